# Passes if nothing is left of a conflict.
! grep -q "^[<=>]" parts.txt
