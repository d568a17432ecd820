package wrapper

import (
	"strings"
	"testing"
)

const rline = "tai-stop:" + fid + ":"

func TestSTP07_ParseReport(t *testing.T) {
	ok := rline + "found=1 status=137 held=0 unreadable=0 marker=0 failed=\n"
	for _, c := range []struct {
		name, out string
		want      Report
		ok        bool
	}{
		{"killed", ok, Report{Found: true, Status: 137}, true},
		{"held", rline + "found=1 status=4 held=1 unreadable=0 marker=0 failed=\n", Report{Found: true, Status: 4, Held: true}, true},
		{"nothing", rline + "found=0 status=-1 held=0 unreadable=0 marker=1 failed=\n", Report{Status: -1, Marker: true}, true},
		{
			"unreadable", rline + "found=1 status=0 held=0 unreadable=1 marker=0 failed=unreadable\n",
			Report{Found: true, Unreadable: true, Failed: FailedUnreadable},
			true,
		},
		{"after other lines", "noise\n\nOCI runtime exec failed\n" + ok, Report{Found: true, Status: 137}, true},
		{"the first counts", ok + rline + "found=0 status=0 held=0 unreadable=0 marker=0 failed=\n", Report{Found: true, Status: 137}, true},
		{"a bad one is passed over", rline + "found=2\n" + ok, Report{Found: true, Status: 137}, true},
		{"empty", "", Report{}, false},
		{"no line end", strings.TrimSuffix(ok, "\n"), Report{}, false},
		{"not at the line's start", " " + ok, Report{}, false},
		{"another's", strings.Replace(ok, "0123", "3210", 1), Report{}, false},
		{"no failed", rline + "found=1 status=137 held=0 unreadable=0 marker=0\n", Report{}, false},
		{"unknown failure", strings.Replace(ok, "failed=", "failed=oops", 1), Report{}, false},
		{"status out of range", strings.Replace(ok, "137", "256", 1), Report{}, false},
		{"status with a sign", strings.Replace(ok, "137", "+1", 1), Report{}, false},
		{"status with a zero", strings.Replace(ok, "137", "01", 1), Report{}, false},
		{"status below", strings.Replace(ok, "137", "-2", 1), Report{}, false},
		{"no status", strings.Replace(ok, "137", "", 1), Report{}, false},
		{"flag", strings.Replace(ok, "held=0", "held=true", 1), Report{}, false},
		{"order", rline + "status=137 found=1 held=0 unreadable=0 marker=0 failed=\n", Report{}, false},
		{"two spaces", strings.Replace(ok, " held", "  held", 1), Report{}, false},
		{"more", strings.Replace(ok, "\n", " x\n", 1), Report{}, false},
		{"carriage return", strings.Replace(ok, "\n", "\r\n", 1), Report{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := ParseReport(fid, []byte(c.out))
			if got != c.want || ok != c.ok {
				t.Errorf("got %+v %v, want %+v %v", got, ok, c.want, c.ok)
			}
		})
	}
}

// FuzzSTP07_ParseReport: more output after a report never changes it, and what is taken
// is in range.
func FuzzSTP07_ParseReport(f *testing.F) {
	f.Add("", "x")
	f.Add(rline+"found=1 status=137 held=0 unreadable=0 marker=0 failed=\n", rline)
	f.Add("a\n"+rline+"found=0 status=-1 held=0 unreadable=1 marker=1 failed=fork\n", "\n")
	f.Fuzz(func(t *testing.T, out, more string) {
		r, ok := ParseReport(fid, []byte(out))
		if !ok {
			if r != (Report{}) {
				t.Errorf("no report, yet %+v", r)
			}
			return
		}
		if r.Status < -1 || r.Status > 255 {
			t.Errorf("status %d", r.Status)
		}
		if again, ok := ParseReport(fid, []byte(out+more)); !ok || again != r {
			t.Errorf("%+v became %+v", r, again)
		}
	})
}
