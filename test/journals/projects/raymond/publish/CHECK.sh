# Fails if there is a file `broken`.
test ! -e broken && echo "<goto>LAST.md</goto>"
