package worker

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
)

// readable is how much of each end of a line that cannot be read is looked at, in bytes.
const readable = 4 << 10

// idForm finds the id of an answer that cannot be read.
var idForm = regexp.MustCompile(`"id"\s*:\s*"?(\d{1,18})\b`)

// tooLong drops a message over the bound. Where a single call is under way it was
// most likely its answer, and the call is told instead of waiting for its deadline.
func (s *server) tooLong() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.junk++
	if id, only := s.only(); only {
		s.lose(id, fmt.Sprintf("it sent a message of more than %d MiB", longestMessage>>20))
	}
}

// unreadable drops a line that is no message. One that was to be an answer ends the
// call with its id, or the only one under way: another answer would not come, and the
// call would wait for its deadline. All else, such as what a server prints for people,
// is ignored.
func (s *server) unreadable(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.junk++
	ends := [][]byte{line[:min(readable, len(line))], line[max(0, len(line)-readable):]}
	has := func(name string) bool {
		return bytes.Contains(ends[0], []byte(name)) || bytes.Contains(ends[1], []byte(name))
	}
	if !has(`"id"`) || !has(`"result"`) && !has(`"error"`) {
		return
	}
	const why = "it sent an answer that is no JSON-RPC message that could be read"
	for _, end := range ends {
		for _, found := range idForm.FindAllSubmatch(end, 8) {
			id, err := strconv.ParseInt(string(found[1]), 10, 64)
			if err == nil && s.waiting[id] != nil {
				s.lose(id, why)
				return
			}
		}
	}
	if id, only := s.only(); only {
		s.lose(id, why)
	}
}

// only is the call under way where there is a single one; s.mu is held.
func (s *server) only() (id int64, only bool) {
	for id = range s.waiting {
	}
	return id, len(s.waiting) == 1
}

// lose ends a call whose answer is lost; s.mu is held.
func (s *server) lose(id int64, why string) {
	own := s.waiting[id]
	delete(s.waiting, id)
	own.answer <- message{Error: &rpcError{messageLost, why + s.ignored()}}
}

// ignored says how many lines of the server were no messages of ours; s.mu is held.
func (s *server) ignored() string {
	if s.junk == 0 {
		return ""
	}
	return fmt.Sprintf(" (messages of it that could not be used: %d)", s.junk)
}
