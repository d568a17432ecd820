package executor

import (
	"time"

	"caisson/sandbox"
)

const (
	// reviewGap is how often a toolkit's list is looked at again without a reason: in
	// a container that stays, and for calls that each have a container of their own.
	reviewGap = 10 * time.Minute
	// noticeGap is how often it is because the server says that it has changed.
	noticeGap = time.Second
	// mostSeen bounds the containers that are remembered as looked at.
	mostSeen = 1000
)

// review looks at a toolkit's list again, in the background, after a call in a
// container whose list nobody has seen, or not for reviewGap, or whose server says
// that its list is another now (notice): a server may have become another one since
// it was approved (T54). What it says differently is not served, but blocked until
// the operator reloads the manifest. In ephemeral mode a notice means nothing: each
// call has a server of its own.
func (t *Toolbox) review(e *entry, r Resolution, owner sandbox.Owner, ceilings *sandbox.Ceilings, container string, notice bool) {
	if e.Kind != KindToolkit || container == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kitOf(e)
	if t.closed || k == nil || k.tools == nil || k.reviewing {
		return
	}
	last, gap := k.seen[container], reviewGap
	switch {
	case r.Rule.Instance.Options.Mode == Ephemeral:
		last = k.reviewed
	case notice:
		last, gap = k.noticed, noticeGap
	}
	if time.Since(last) < gap {
		return
	}
	if notice {
		k.noticed = time.Now()
	}
	k.reviewing = true
	t.lists.Go(func() {
		tools, _, err := t.ask(k.life, k, r, owner, ceilings)
		t.mu.Lock()
		k.reviewing, k.reviewed = false, time.Now()
		news := false
		if err == nil {
			if len(k.seen) >= mostSeen {
				clear(k.seen)
			}
			k.seen[container] = time.Now()
			news = t.block(k, tools)
		}
		t.mu.Unlock()
		if news {
			t.tell()
		}
	})
}

// kitOf finds the toolkit of a tool in the manifest that is in force; t.mu is held.
func (t *Toolbox) kitOf(e *entry) *kit {
	for _, k := range t.kits {
		if k.Name == e.subject.Toolkit {
			return k
		}
	}
	return nil
}

// block takes tools out of service whose definitions differ from the ones that are
// served, and says whether there were any; t.mu is held.
func (t *Toolbox) block(k *kit, now []listed) bool {
	if k.life.Err() != nil {
		return false // another manifest is in force
	}
	news := false
	for _, own := range differences(k.tools, now) {
		if k.changed[own] == "" {
			k.changed[own] = "the toolkit's server defines this tool in another way than when it was listed; it is not served until the operator has the manifest read again"
			t.log.Warn("a toolkit's tool has changed since it was listed, and is blocked", "toolkit", k.Name, "tool", clean(own))
			news = true
		}
	}
	if news {
		t.assemble()
	}
	return news
}

// differences are the tools, by their own names, that two lists define in different
// ways. What one of them does not have is none: it is not served, or fails by itself.
func differences(before, now []listed) []string {
	pins := map[string]string{}
	for _, l := range before {
		pins[l.Name] = l.pin()
	}
	var all []string
	for _, l := range now {
		if pin, ok := pins[l.Name]; ok && pin != l.pin() {
			all = append(all, l.Name)
		}
	}
	return all
}
