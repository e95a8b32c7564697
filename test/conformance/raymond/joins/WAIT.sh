while [ ! -e found ]; do sleep 1; done; echo "<goto>NEXT.md</goto>"
