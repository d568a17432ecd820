package mcp

import (
	"container/list"
	"sync"

	"caisson/sandbox"
)

// maxCursors is how many read positions are kept; the one unused the longest
// goes first, and its reader begins at the start again.
const maxCursors = 10_000

// positions is where the next read of each stream begins.
type positions [2]int64

// cursors keeps where each caller's last result for an exec ended, so that
// exec_output without an offset goes on from there.
type cursors struct {
	mu    sync.Mutex
	order list.List // of cursor, the latest used first
	byKey map[cursorKey]*list.Element
}

type cursorKey struct{ caller, exec string }

type cursor struct {
	key cursorKey
	at  positions
}

func (c *cursors) of(who caller, e *sandbox.Exec) positions {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.byKey[cursorKey{who.key(), e.ID()}]
	if !ok {
		return positions{}
	}
	c.order.MoveToFront(at)
	return at.Value.(cursor).at
}

func (c *cursors) set(who caller, e *sandbox.Exec, at positions) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := cursorKey{who.key(), e.ID()}
	if old, ok := c.byKey[key]; ok {
		old.Value = cursor{key, at}
		c.order.MoveToFront(old)
		return
	}
	if c.byKey == nil {
		c.byKey = map[cursorKey]*list.Element{}
	}
	c.byKey[key] = c.order.PushFront(cursor{key, at})
	if c.order.Len() > maxCursors {
		last := c.order.Back()
		delete(c.byKey, c.order.Remove(last).(cursor).key)
	}
}
