package sandbox_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"caisson/sandbox"
)

func pool(t *testing.T, memory, disk, total int64) *sandbox.Spools {
	t.Helper()
	p, err := sandbox.NewSpools(sandbox.SpoolLimits{Memory: memory, Disk: disk, Total: total, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// checkKept reads what is kept of stdout, step by step, holds each byte against
// its pattern, and returns how many there were.
func checkKept(t *testing.T, s *sandbox.Spool, step int) (n int64) {
	t.Helper()
	for at := int64(0); ; {
		c, err := s.Read(sandbox.Stdout, at, step)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Data) == 0 {
			return n
		}
		for i, b := range c.Data {
			if want := pattern(c.Offset + int64(i)); b != want {
				t.Fatalf("byte %d is %d, want %d", c.Offset+int64(i), b, want)
			}
		}
		n += int64(len(c.Data))
		at = c.Offset + int64(len(c.Data))
	}
}

// pattern is a byte that tells its own offset apart from its neighbours'.
func pattern(n int64) byte { return byte(n*31 + n>>8*7 + n>>16) }

func TestD13_SpoolKeepsHeadAndTailAndCountsAll(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name                string
		memory, disk, total int64
		written             int64
		head, tail          int64
	}{
		{"in memory", 1024, 0, 0, 500, 500, 0},
		{"memory cap to the byte", 1024, 0, 0, 512, 512, 0},
		{"past the memory cap, no file", 1024, 0, 0, 5000, 256, 256},
		{"in a file", 1024, 4 * mib, 0, mib + 77, mib + 77, 0},
		{"past the file's cap", 1024, 4 * mib, 0, 5*mib + 3, mib, mib},
		{"pool used up", 1024, 64 * mib, 1 * mib, 3 * mib, mib / 2, mib / 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pool(t, c.memory, c.disk, c.total)
			s := p.New()
			rnd := rand.New(rand.NewPCG(1, uint64(c.written)))
			for n := int64(0); n < c.written; {
				piece := make([]byte, min(c.written-n, 1+rnd.Int64N(70_000)))
				for i := range piece {
					piece[i] = pattern(n + int64(i))
				}
				s.Append(sandbox.Stdout, piece)
				n += int64(len(piece))
			}
			if got := s.Total(sandbox.Stdout); got != c.written {
				t.Fatalf("total %d, want %d", got, c.written)
			}
			want := []sandbox.Range{{Start: 0, End: c.head}}
			if c.tail > 0 {
				want = append(want, sandbox.Range{Start: c.written - c.tail, End: c.written})
			}
			if got := fmt.Sprint(s.Kept(sandbox.Stdout)); got != fmt.Sprint(want) {
				t.Fatalf("kept %v, want %v", got, want)
			}
			if n := checkKept(t, s, 100_001); n != c.head+c.tail {
				t.Fatalf("%d bytes read, want %d", n, c.head+c.tail)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if p.Used() != 0 {
				t.Fatalf("%d bytes of the pool still taken", p.Used())
			}
		})
	}
}

func TestD13_OldestEndedSpoolMakesRoom(t *testing.T) {
	p := pool(t, 64, 4<<20, 2<<20)
	fill := func() *sandbox.Spool {
		s := p.New()
		s.Append(sandbox.Stderr, bytes.Repeat([]byte("x"), 900_000))
		return s
	}
	first, second := fill(), fill()
	for _, s := range []*sandbox.Spool{first, second} {
		s.Seal()
		p.Ended(s)
	}
	third := fill()
	if _, err := first.Read(sandbox.Stderr, 0, 10); err == nil {
		t.Error("the oldest record's output is still kept")
	}
	if got := first.Total(sandbox.Stderr); got != 900_000 {
		t.Errorf("the dropped record's count is %d", got)
	}
	for name, s := range map[string]*sandbox.Spool{"second": second, "third": third} {
		if c, err := s.Read(sandbox.Stderr, 899_990, 100); err != nil || len(c.Data) != 10 {
			t.Errorf("%s: %d bytes, %v", name, len(c.Data), err)
		}
		_ = s.Close()
	}
	if p.Used() != 0 {
		t.Errorf("%d bytes of the pool still taken", p.Used())
	}
}

func TestSTR12_SealedSpoolTakesNoMore(t *testing.T) {
	s := pool(t, 1024, 0, 0).New()
	changed := s.Changed()
	s.Append(sandbox.Stdout, []byte("before"))
	<-changed
	s.Seal()
	s.Append(sandbox.Stdout, []byte("after"))
	c, err := s.Read(sandbox.Stdout, 0, 100)
	if err != nil || string(c.Data) != "before" || s.Total(sandbox.Stdout) != 6 {
		t.Fatalf("%q, %v, total %d", c.Data, err, s.Total(sandbox.Stdout))
	}
}
