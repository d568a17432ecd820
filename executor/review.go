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
	// failedGap is how long it is left alone after a look that has failed: the next one
	// may cost as much, and the container too where it takes too long.
	failedGap = time.Minute
)

// look is what is known of a toolkit's list in the containers of one executor for one
// owner. Whoever may run something beside the server can forge what it says, and another
// policy may run another server: so it holds there, and for nobody else. All of it is under
// Toolbox.mu.
type look struct {
	asking    bool            // it is looked at right now
	container string          // where it was looked at last
	next      time.Time       // when it is again without a reason
	quiet     time.Time       // until when there is no reason to
	changed   map[string]bool // tools that are defined in another way there, by their own names
}

// review looks at a toolkit's list again, in the background, after a call in a
// container whose list nobody has seen, or not for reviewGap, or whose server says
// that its list is another now (notice): a server may have become another one since
// it was approved (T54). What it says differently is not served there until the operator
// reloads the manifest, and to nobody where the server under which the toolkit is listed
// says so too. In ephemeral mode a notice means nothing: each call has a server of its own.
func (t *Toolbox) review(e *entry, r Resolution, owner sandbox.Owner, ceilings *sandbox.Ceilings, container string, notice bool) {
	if e.Kind != KindToolkit || container == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kitOf(e)
	if t.closed || k == nil || k.tools == nil {
		return
	}
	place, now := slotKey{r.Rule.Instance, owner}, time.Now()
	l := k.look(place)
	due := !now.Before(l.next)
	if r.Rule.Instance.Options.Mode != Ephemeral {
		due = due || notice || l.container != container
	}
	if !due || l.asking || now.Before(l.quiet) {
		return
	}
	if notice {
		l.quiet = now.Add(noticeGap)
	}
	l.asking, l.container = true, container
	t.lists.Go(func() {
		if t.compare(k, r, place, ceilings) {
			t.confirm(k)
		}
	})
}

// look gives what is known of a place; t.mu is held. There are no more of them than the
// pool has executors.
func (k *kit) look(place slotKey) *look {
	if k.looks[place] == nil {
		k.looks[place] = &look{changed: map[string]bool{}}
	}
	return k.looks[place]
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

// confirm looks at the list where the toolkit was listed, since it is another one
// somewhere else: what has changed there too is served to nobody.
func (t *Toolbox) confirm(k *kit) {
	t.mu.Lock()
	r, place := k.rule, k.home
	ask := place.instance != nil && !t.closed && !k.look(place).asking // a reload's new list may not be there yet
	if ask {
		k.look(place).asking = true
	}
	t.mu.Unlock()
	if ask {
		t.compare(k, r, place, nil)
	}
}

// compare looks at the list in one place, whose look the caller has marked as asking. It
// says whether it is another one there than was known, and for that place alone.
func (t *Toolbox) compare(k *kit, r Resolution, place slotKey, ceilings *sandbox.Ceilings) (elsewhere bool) {
	tools, container, err := t.ask(k.life, k, r, place.owner, ceilings)
	t.mu.Lock()
	l, now, news, home := k.look(place), time.Now(), false, place == k.home
	l.asking, l.next = false, now.Add(reviewGap)
	switch {
	case k.life.Err() != nil: // another manifest is in force
	case err != nil:
		l.quiet = now.Add(failedGap)
		l.next = l.quiet
		t.log.Warn("a toolkit's list could not be compared with the one that is served", "toolkit", k.Name, "owner", place.owner.Hash(), "error", err)
	default:
		l.container = container
		news = t.block(k, place, tools)
	}
	t.mu.Unlock()
	if news && home {
		t.tell()
	}
	return news && !home
}

// block takes tools out of service in a place whose definitions differ there from the ones
// that are served, and everywhere if it is the one where the toolkit is listed. It says
// whether there were any; t.mu is held.
func (t *Toolbox) block(k *kit, place slotKey, now []listed) (news bool) {
	l := k.look(place)
	for _, own := range differences(k.tools, now) {
		if l.changed[own] {
			continue
		}
		l.changed[own], news = true, true
		where := "for its owner"
		if place == k.home {
			where = "for everybody"
			k.changed[own] = "the toolkit's server defines this tool in another way than when it was listed; it is not served until the operator has the manifest read again"
		}
		t.log.Warn("a toolkit's tool has changed since it was listed, and is blocked "+where, "toolkit", k.Name, "tool", clean(own), "executor", place.instance.label(), "owner", place.owner.Hash())
	}
	if news && place == k.home {
		t.assemble()
	}
	return news
}

// changedFor says why a tool is not served to an owner in one place, or nothing; t.mu is
// held.
func (t *Toolbox) changedFor(e *entry, place slotKey) string {
	k := t.kitOf(e)
	if k == nil || k.looks[place] == nil || !k.looks[place].changed[e.method] {
		return ""
	}
	return "in your container the toolkit's server defines this tool in another way than when it was listed; it is not served to you there until the operator has the manifest read again"
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
