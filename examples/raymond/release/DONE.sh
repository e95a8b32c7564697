#!/bin/sh
# What the function came to is handed over in the environment.
case $RAYMOND_RESULT in
  YES) echo "<result>notes.md is ready</result>" ;;
  *) echo "<goto input='A stranger would not understand them.'>NOTES.md</goto>" ;;
esac
