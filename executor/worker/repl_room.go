package worker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// find gives the REPL of that key, and its turn to the caller, who gives it back. Where
// there are mostREPLs already, the one that was used longest ago and runs no call is
// ended for it. It returns when ctx ends; it fails without room, and after close.
func (r *repls) find(ctx context.Context, key string) (*repl, error) {
	for {
		one, fresh, evicted, err := r.entry(key)
		if err != nil {
			return nil, err
		}
		if evicted != nil {
			evicted.inner.kill()
			<-evicted.turn
		}
		if fresh {
			return one, nil
		}
		select {
		case one.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if !one.gone {
			return one, nil
		}
		<-one.turn // it was ended meanwhile: there is room for another
	}
}

// entry gives the REPL of that key. The caller has the turn of a fresh one, and that of
// one that was evicted for it, whose process is still to be killed: that takes too long
// for the lock.
func (r *repls) entry(key string) (one *repl, fresh bool, evicted *repl, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, false, nil, errors.New("the worker is ending")
	}
	if one, ok := r.all[key]; ok {
		return one, false, nil, nil
	}
	if len(r.all) >= mostREPLs {
		its, oldest := r.idlest()
		if oldest == nil {
			return nil, false, nil, fmt.Errorf("this container runs %d REPLs already, which is the most, and each of them is at a call; call again when one has finished", mostREPLs)
		}
		r.forget(its, oldest, fmt.Sprintf("to make room for another: a container runs %d REPLs, and this one had not been used for the longest time", mostREPLs))
		if oldest.inner != nil {
			evicted = oldest
		} else {
			<-oldest.turn
		}
	}
	one = &repl{turn: make(chan struct{}, 1), used: time.Now(), lost: r.lost[key]}
	one.turn <- struct{}{}
	delete(r.lost, key)
	r.all[key] = one
	return one, true, evicted, nil
}

// idlest finds the REPL that was used longest ago among those that run no call, and
// takes its turn; nil: all run one. The caller has the lock.
func (r *repls) idlest() (key string, oldest *repl) {
	for k, one := range r.all {
		select {
		case one.turn <- struct{}{}:
		default:
			continue // under way
		}
		if oldest != nil && !one.used.Before(oldest.used) {
			<-one.turn
			continue
		}
		if oldest != nil {
			<-oldest.turn
		}
		key, oldest = k, one
	}
	return key, oldest
}

// forget takes a REPL away from the others, and keeps what its next call has to be told.
// The caller has the lock and the REPL's turn.
func (r *repls) forget(key string, one *repl, why string) {
	note := one.lost // of a process that it had before, when it has none now
	if one.inner != nil {
		note = "the Python process was ended " + why + "; " + lostNames(one.inner.names)
	}
	if note != "" {
		if len(r.lost) >= mostNotes {
			clear(r.lost)
		}
		r.lost[key] = note
	}
	one.gone = true
	delete(r.all, key)
}

// sweep ends the REPLs that nobody uses, until close.
func (r *repls) sweep() {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-r.stop:
			return
		case now := <-tick.C:
			r.expire(now)
		}
	}
}

// expire ends those that were last used more than idleTime before now.
func (r *repls) expire(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, one := range r.all {
		select {
		case one.turn <- struct{}{}:
		default:
			continue // under way
		}
		if now.Sub(one.used) > idleTime {
			if one.inner != nil {
				one.inner.kill()
			}
			r.forget(key, one, fmt.Sprintf("because it had not been used for %s", idleTime))
		}
		<-one.turn
	}
}
