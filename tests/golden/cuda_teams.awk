# Of a .cu: for each loop over a segment by whom it is gone through, `a thread: KERNEL` where a thread has the row,
# `a team: KERNEL` where its threads share the entries, `each alike: KERNEL` where all of them go through all.
/__global__/ { name = $NF; sub(/\(.*/, "", name) }
/GN_ROWS\(/ { who = "a thread" }
/GN_TEAM_ROWS\(|GN_HUBS\(/ { who = "a team" }
/^}/ { who = "" }
/gn_end_[0-9]+ = [A-Za-z_0-9]+_ptr(_[0-9]+)?\[/ { entries = $3 }
who && entries && /for \(int64_t/ && index($0, "< " entries ";") {
    print (who == "a team" && /\+\+\) \{$/ ? "each alike" : who) ": " name
    entries = ""
}
