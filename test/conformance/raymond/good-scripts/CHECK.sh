echo "<reset>START.sh</reset>"
