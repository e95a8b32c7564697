#!/bin/sh
if test -f stop; then echo "<result>stopped</result>"; else echo "<goto input=\"$(date)\">WORK</goto>"; fi
