package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"caisson/sandbox"
)

const (
	listAgainFirst = 5 * time.Second
	listAgainLast  = 5 * time.Minute
)

// kit is a toolkit and what is known of its tools. What is below end is under
// Toolbox.mu.
type kit struct {
	Toolkit
	tried chan struct{} // closed when it has been listed, or that has failed once
	life  context.Context
	end   context.CancelFunc

	tools   []listed          // as they are served; nil: not known yet
	listing bool              // the list is not there yet, and is asked for (again)
	changed map[string]string // why a tool is blocked whose definition has changed since, by its own name
	failed  string            // why it could not be listed
	looks   map[slotKey]*look // what is known of the list where its tools run
	home    slotKey           // where it was listed; set, with rule, before anything is looked at again
	rule    Resolution
}

func newKit(life context.Context, declared Toolkit) *kit {
	k := &kit{Toolkit: declared, listing: true, tried: make(chan struct{}), changed: map[string]string{}, looks: map[slotKey]*look{}}
	k.life, k.end = context.WithCancel(life)
	return k
}

// same says whether a declaration is of the same server.
func (k *kit) same(t Toolkit) bool {
	return k.Name == t.Name && k.Prefix == t.Prefix && slices.Equal(k.Command, t.Command)
}

// missing says why a kit has no tools yet.
func (k *kit) missing() string {
	if k.failed != "" {
		return fmt.Sprintf("the tools of the toolkit %s could not be listed: %s", k.Name, k.failed)
	}
	return fmt.Sprintf("the tools of the toolkit %s are still being listed; call again in a moment", k.Name)
}

// subjectOfAll stands for all tools of a toolkit: the rule for it is the one under
// which they are listed.
func (t Toolkit) subjectOfAll() Subject {
	s := t.subject(t.Prefix + "_")
	s.Toolkit, s.Prefix = t.Name, t.Prefix
	return s
}

// list lists a toolkit, until that has succeeded or the toolbox or the manifest is
// over.
func (t *Toolbox) list(k *kit) {
	again := listAgainFirst
	for {
		final := t.listOnce(k)
		if k.life.Err() != nil {
			return
		}
		t.mu.Lock()
		k.listing = !final
		t.mu.Unlock()
		if !isClosed(k.tried) {
			close(k.tried)
		}
		if final {
			return
		}
		timer := time.NewTimer(again)
		select {
		case <-timer.C:
		case <-k.life.Done():
			timer.Stop()
			return
		}
		again = min(2*again, listAgainLast)
	}
}

// listOnce lists a toolkit, and says whether there is nothing more to try.
func (t *Toolbox) listOnce(k *kit) (final bool) {
	t.mu.Lock()
	policy := t.manifest.policies[0]
	t.mu.Unlock()
	r := policy.Resolve(k.subjectOfAll())
	if reason := r.Refusal(); reason != "" {
		t.fail(k, reason)
		return true
	}
	owner := t.owner
	owner.Tools = true
	tools, container, err := t.ask(k.life, k, r, owner, nil)
	if k.life.Err() != nil {
		return true
	}
	if err != nil {
		t.fail(k, err.Error())
		return false
	}
	tools = k.formed(tools) // before the lock: it may take a while
	t.mu.Lock()
	before := k.tools
	k.tools, k.failed, k.rule, k.home = tools, "", r, slotKey{r.Rule.Instance, owner}
	home := k.look(k.home)
	home.container, home.next = container, time.Now().Add(reviewGap)
	t.assemble()
	t.mu.Unlock()
	t.log.Info("toolkit listed", "toolkit", k.Name, "tools", len(tools))
	if before != nil {
		for _, own := range differences(before, tools) {
			t.log.Warn("a toolkit's tool has changed, and is served as it is now", "toolkit", k.Name, "tool", clean(own))
		}
	}
	t.tell()
	return true
}

func (t *Toolbox) fail(k *kit, reason string) {
	t.log.Warn("toolkit not listed", "toolkit", k.Name, "reason", reason)
	t.mu.Lock()
	defer t.mu.Unlock()
	k.failed = reason
}

// ask lists a toolkit's tools on the executor of a rule, for an owner, and says in
// which container that was.
func (t *Toolbox) ask(ctx context.Context, k *kit, r Resolution, owner sandbox.Owner, ceilings *sandbox.Ceilings) (tools []listed, container string, err error) {
	envelope, err := k.NewToolkitList()
	if err != nil {
		return nil, "", err
	}
	envelope.Timeout = r.Timeout
	watch := Watch{Stderr: func(line string) { t.log.Debug("toolkit's standard error", "toolkit", k.Name, "line", line) }}
	result, err := t.execute(ctx, r.Rule.Instance, owner, ceilings, envelope, watch)
	if err != nil {
		return nil, "", errors.New(textOf(err))
	}
	if !result.Success {
		return nil, "", errors.New(cutAt(clean(result.Error), 500))
	}
	tools, notes, err := readListing(result.Result)
	for _, note := range notes {
		t.log.Warn("a toolkit's list was not taken whole", "toolkit", k.Name, "note", note)
	}
	return tools, word(result, "container"), err
}

// word is a text of a result's metadata, or nothing.
func word(r Result, name string) string {
	var text string
	_ = json.Unmarshal(r.Metadata[name], &text) // what is none is nothing
	return text
}
