# Of a .cu: `a thread: KERNEL` or `a team: KERNEL` for each loop over a segment, by who has the row.
/__global__/ { name = $NF; sub(/\(.*/, "", name) }
/GN_ROWS\(/ { who = "a thread" }
/GN_TEAM_ROWS\(|GN_HUBS\(/ { who = "a team" }
/^}/ { who = "" }
who && /gn_end_[0-9]+ = [A-Za-z_0-9]+_ptr\[/ { print who ": " name }
