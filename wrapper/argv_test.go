package wrapper

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestReadArgv: what was put into a wrapper's command line comes out of it, whatever the
// command looks like.
func TestReadArgv(t *testing.T) {
	other := strings.Repeat("0", 32)
	due := time.Date(2031, 4, 5, 6, 7, 8, 0, time.UTC)
	for _, argv := range [][]string{
		{"true"},
		{""},
		{"sh", "-c", "echo 'a' \"b\" $(c) `d`\n\ttwo lines\n", "", " "},
		{"tai_id='" + other + "'\ntai_until=1\ntai_linger=\ntai_child='x'"},
		{"'\ntai_id='" + other + "'\ntai_until=1\n"},
		{shell, "-c", "tai_id='" + other + "'\ntai_until=1\ntai_linger=1\ntai_child='", shellName, "", "true"},
		StopArgv(other, "KILL"),
		Command{ID: other, Argv: []string{"true"}}.ExecArgv(),
		{"\x00\xff", "é\u2028", strings.Repeat("x", 1<<16)},
	} {
		for _, until := range []time.Time{{}, due} {
			for _, linger := range []bool{false, true} {
				for _, path := range []string{"", "/bin", "tai_id='" + other + "'"} {
					c := Command{ID: fid, Argv: argv, Until: until, Linger: linger, Path: path}
					got, ok := ReadArgv(c.ExecArgv())
					if !ok || got.ID != fid || !got.Until.Equal(until) || !slices.Equal(got.Argv, argv) {
						t.Errorf("%.80q until %v, linger %v, PATH %q: %v %+.80v", argv, until, linger, path, ok, got)
					}
				}
			}
		}
	}
	early := Command{ID: fid, Argv: []string{"true"}, Until: due.Add(time.Nanosecond)}
	if got, _ := ReadArgv(early.ExecArgv()); !got.Until.Equal(due.Add(time.Second)) {
		t.Errorf("a time within a second is told as %v, never to be before it", got.Until)
	}
}

// TestReadArgv_others: an argv that is no command's is not taken for one.
func TestReadArgv_others(t *testing.T) {
	whole := Command{ID: fid, Argv: []string{"true"}}.ExecArgv()
	with := func(i int, word string) []string {
		argv := slices.Clone(whole)
		argv[i] = word
		return argv
	}
	script := func(old, text string) []string { return with(2, strings.Replace(whole[2], old, text, 1)) }
	for name, argv := range map[string][]string{
		"none":               nil,
		"a stop":             StopArgv(fid, "KILL"),
		"a stop with words":  append(StopArgv(fid, "KILL"), "", "true"),
		"a signal":           StopArgv(fid, "TERM"),
		"a stop that quotes": append(StopArgv("x'\ntai_id='"+fid+"'\ntai_until=0\ntai_linger=\ntai_child='", "KILL"), "", "true"),
		"no command":         whole[:5],
		"another shell":      with(0, "/bin/bash"),
		"another option":     with(1, "-x"),
		"another name":       with(3, "bash"),
		"a script of others": with(2, "echo "+fid),
		"a line before":      with(2, "\n"+whole[2]),
		"an id too short":    script(fid, fid[1:]),
		"an id too long":     script(fid, fid+"0"),
		"an id in capitals":  script(fid, strings.ToUpper("abcdef"+fid[6:])),
		"an id with a quote": script(fid, `a'\''`+fid[5:]),
		"a negative time":    script("tai_until=0", "tai_until=-1"),
		"no time":            script("tai_until=0", "tai_until="),
		"an endless time":    script("tai_until=0", "tai_until="+strings.Repeat("9", 30)),
		"a time with zeros":  script("tai_until=0", "tai_until=007"),
		"another linger":     script("tai_linger=", "tai_linger=2"),
	} {
		if got, ok := ReadArgv(argv); ok {
			t.Errorf("%s: taken for the command %q of %s", name, got.Argv, got.ID)
		}
	}
}
