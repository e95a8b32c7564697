echo "<reset>START.md</reset>"
