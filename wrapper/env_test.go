package wrapper

import (
	"os/exec"
	"strings"
	"testing"
)

// TestEXW19_EnvPasses: what is said to pass does, in the shells that images really have,
// and what the scripts use is said not to.
func TestEXW19_EnvPasses(t *testing.T) {
	var env []string
	for _, name := range []string{
		"HOME", "USER", "LANG", "LC_ALL", "TZ", "TERM", "COLUMNS", "LINES", "PS4", "ENV", "BASH_ENV", "CDPATH",
		"OPTARG", "REPLY", "HOSTNAME", "UID", "EUID", "MAIL", "TMPDIR", "_x", "x9", "A_B", "LD_PRELOAD_", "http_proxy", "TAI_ID",
	} {
		if !EnvPasses(name) {
			t.Errorf("%s is said not to pass", name)
		}
		env = append(env, name+"=some value")
	}
	for _, name := range []string{"", "a.b", "A-B", "1x", "é", "BASH_FUNC_x%%", "a=b", "a b", "tai_id", "tai_", "IFS", "OPTIND", "PWD", "SHELLOPTS"} {
		if EnvPasses(name) {
			t.Errorf("%q is said to pass", name)
		}
	}
	for _, shell := range []string{"dash", "ash", "bash"} {
		t.Run(shell, func(t *testing.T) {
			b := newBox(t, shell)
			w := b.start(Command{Argv: []string{"/usr/bin/env"}}, func(c *exec.Cmd) { c.Env = append([]string{"PATH=/usr/bin:/bin"}, env...) })
			w.wait()
			for _, e := range env {
				if !strings.Contains("\n"+w.stdout(), "\n"+e+"\n") {
					t.Errorf("%s did not pass", e)
				}
			}
		})
	}
}
