package worker

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// process is a line of the process table.
type process struct {
	pid, parent int
	state       byte
}

func (p process) dead() bool { return p.state == 'Z' || p.state == 'X' }

// processes reads the process table of this container. What ends meanwhile is left
// out.
func processes() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	var all []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		// pid (name) state parent …: the name may hold anything, brackets too.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) < 2 || len(fields[0]) != 1 {
			continue
		}
		parent, err := strconv.Atoi(fields[1])
		if err != nil {
			continue
		}
		all = append(all, process{pid, parent, fields[0][0]})
	}
	return all
}

// descendants are the live processes below one, itself not among them.
func descendants(root int) []int {
	all := processes()
	below := map[int]bool{root: true}
	var found []int
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if below[p.parent] && !below[p.pid] {
				below[p.pid], grown = true, true
				if !p.dead() {
					found = append(found, p.pid)
				}
			}
		}
	}
	return found
}
