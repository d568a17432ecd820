package sandbox

import (
	"fmt"
	"os"
	"sync"
)

// SpoolLimits bounds what is kept of commands' output. Memory and Disk are per
// exec, both streams together; Total is over all execs' files. In bytes. An
// empty Dir is the system's folder for temporary files.
type SpoolLimits struct {
	Memory, Disk, Total int64
	Dir                 string
}

const (
	// memoryTotal bounds what all spools keep in memory together, so that many
	// small records cannot grow the server: past it they go to files at once.
	memoryTotal = 32 << 20
	// memoryFloor is what every stream may keep in memory all the same.
	memoryFloor = 4 << 10
	memoryStep  = 32 << 10
)

// Spools makes spools and keeps their files under one total. It may be used
// concurrently.
type Spools struct {
	limits SpoolLimits

	mu     sync.Mutex
	used   int64
	memory int64
	ended  []*Spool // whose exec has ended, oldest first: they make room
}

// NewSpools checks that spool files can be made, so that a wrong folder is
// found at start and not in the middle of a command's output.
func NewSpools(limits SpoolLimits) (*Spools, error) {
	p := &Spools{limits: limits}
	file, err := p.tempFile()
	if err != nil {
		return nil, fmt.Errorf("make a spool file: %w", err)
	}
	return p, file.Close()
}

// New makes an empty spool.
func (p *Spools) New() *Spool {
	s := &Spool{pool: p, changed: make(chan struct{})}
	for i := range s.lanes {
		s.lanes[i].memCap = max(p.limits.Memory/int64(streams), 2)
		s.lanes[i].fileCap = p.limits.Disk / int64(streams)
	}
	return s
}

// Ended marks a spool as one that may be dropped when room is needed, the
// longest ended first (D13).
func (p *Spools) Ended(s *Spool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = append(p.ended, s)
}

// Used is how many bytes of Total are taken.
func (p *Spools) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// reserve takes n bytes of the total, dropping ended spools to find them. It is
// called with a spool's lock held, so it only ever locks spools that have
// ended, and those reserve nothing.
func (p *Spools) reserve(n int64) bool {
	for {
		p.mu.Lock()
		if p.limits.Total <= 0 || p.used+n <= p.limits.Total {
			p.used += n
			p.mu.Unlock()
			return true
		}
		if len(p.ended) == 0 {
			p.mu.Unlock()
			return false
		}
		oldest := p.ended[0]
		p.ended = p.ended[1:]
		p.mu.Unlock()
		_ = oldest.Close() // its file has no name: closing it cannot leave anything behind
	}
}

func (p *Spools) release(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= n
}

// takeMemory raises a lane's budget by a step, up to its cap. The first step is
// always given, so that a command with little output never needs a file.
func (p *Spools) takeMemory(budget *int64, limit int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	step := min(memoryStep, limit-*budget)
	if *budget == 0 {
		step = min(memoryFloor, limit)
	} else if p.memory+step > memoryTotal {
		return false
	}
	*budget += step
	p.memory += step
	return true
}

func (p *Spools) returnMemory(budget *int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.memory -= *budget
	*budget = 0
}

func (p *Spools) forget(s *Spool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.ended {
		if other == s {
			p.ended = append(p.ended[:i:i], p.ended[i+1:]...)
			return
		}
	}
}

// tempFile makes a file without a name: it goes with the process, however that
// ends.
func (p *Spools) tempFile() (*os.File, error) {
	file, err := os.CreateTemp(p.limits.Dir, "caisson-spool-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}
