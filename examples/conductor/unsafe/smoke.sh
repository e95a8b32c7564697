# Checks that the server starts.
test "$(sh server.sh)" = ready
