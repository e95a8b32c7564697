# Whether it starts.
test "$(sh server.sh)" = ready
