package executor

import (
	"encoding/json"
)

// mostREPLs is for how many REPLs an executor remembers where they live.
const mostREPLs = 1000

// sameREPL remembers in which container a REPL has answered. Where an earlier call of it
// was in another one, what it kept is gone, and the result says so and why: the worker
// there can tell nobody any more.
func (w *warm) sameREPL(b *box, e Envelope, r Result) Result {
	if _, ran := r.Metadata["repl_fresh"]; !ran || e.ToolPath != REPLPath {
		return r
	}
	key := string(e.InitArgs["name"]) + string(e.InitArgs["instance"])
	w.mu.Lock()
	before := w.repls[key]
	why := ""
	if before != nil && before != b {
		why = before.why
	}
	if len(w.repls) >= mostREPLs {
		clear(w.repls)
	}
	w.repls[key] = b
	if _, died := r.Metadata["repl_death"]; died {
		delete(w.repls, key) // it says itself what is lost
	}
	w.mu.Unlock()
	if why == "" {
		return r
	}
	return noted(r, "the container in which this REPL ran before was given up: "+why+"; what earlier calls had defined, imported or opened is lost")
}

// noted adds a note to the result of a REPL.
func noted(r Result, text string) Result {
	var session map[string]json.RawMessage
	if json.Unmarshal(r.Result, &session) != nil || session == nil {
		return r // it is none of the worker's
	}
	var own string
	if json.Unmarshal(session["note"], &own) == nil && own != "" {
		text += "; " + own
	}
	session["note"] = quoted(text)
	if whole, err := json.Marshal(session); err == nil {
		r.Result = whole
	}
	return r
}
