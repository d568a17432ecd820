package wrapper

import (
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Started is what the command line of a command's wrapper tells of it.
type Started struct {
	// ID and Argv are the command's own, as in [Command].
	ID   string
	Argv []string
	// Until is when its time is over, to the second; zero for never.
	Until time.Time
}

// firstLines are those that ExecArgv puts before its scripts, which another version may
// have in another form. No byte of the caller's comes before their end.
var firstLines = regexp.MustCompile(`\Atai_id='([0-9a-f]{32})'\ntai_until=(0|[1-9][0-9]{0,11})\ntai_linger=1?\ntai_child='`)

// ReadArgv takes apart an argv that [Command.ExecArgv] made, as an engine tells it of an
// exec. It returns false for any other: a stop's, one that is not ours.
func ReadArgv(argv []string) (Started, bool) {
	const words = 5 // before the command's own
	if len(argv) <= words || argv[0] != shell || argv[1] != "-c" || argv[3] != shellName {
		return Started{}, false
	}
	m := firstLines.FindStringSubmatch(argv[2])
	if m == nil {
		return Started{}, false
	}
	until, err := strconv.ParseInt(m[2], 10, 64)
	if err != nil {
		return Started{}, false
	}
	s := Started{ID: m[1], Argv: slices.Clone(argv[words:])}
	if until != 0 {
		s.Until = time.Unix(until, 0)
	}
	return s, true
}

// seconds is t in whole seconds since 1970, rounded up; 0 for the zero time.
func seconds(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	if t.Nanosecond() > 0 {
		t = t.Add(time.Second)
	}
	return strconv.FormatInt(t.Unix(), 10)
}
