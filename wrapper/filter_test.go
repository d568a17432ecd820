package wrapper

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const fid = "0123456789abcdef0123456789abcdef"

const mark = "tai-exec:" + fid + ":"

// feed puts text through a filter in pieces of the given sizes, the last size repeating.
func feed(s Stream, text string, sizes ...int) (content string, events []Event, complete bool) {
	f := NewFilter(fid)
	f.streams[1-s].ended = true
	var out strings.Builder
	for i := 0; len(text) > 0; i++ {
		n := min(max(1, sizes[min(i, len(sizes)-1)]), len(text))
		c, e := f.Feed(s, []byte(text[:n]))
		out.Write(c)
		events = append(events, e...)
		text = text[n:]
	}
	complete = f.Complete()
	out.Write(f.Flush(s))
	return out.String(), events, complete
}

func TestD27_Filter(t *testing.T) {
	end := Event{Kind: EndOfStream}
	for _, c := range []struct {
		name, text, want string
		stream           Stream
		events           []Event
		complete         bool
	}{
		{"plain", "hello\n", "hello\n", Stdout, nil, false},
		{"ended", "hello" + mark + "end\n", "hello", Stdout, []Event{end}, true},
		{"nothing and ended", mark + "end\n", "", Stdout, []Event{end}, true},
		{"cut in the marker", "hi" + mark + "en", "hi", Stdout, nil, false},
		{"cut in the prefix", "hi" + mark[:20], "hi" + mark[:20], Stdout, nil, false},
		{"content begins like it", "tai-exec:tai-exec:x" + mark + "end\n", "tai-exec:tai-exec:x", Stdout, []Event{end}, true},
		{"prefix before prefix", "tai-exec:" + mark + "end\n", "tai-exec:", Stdout, []Event{end}, true},
		{"another's marker", "tai-exec:" + strings.Repeat("0", 32) + ":end\n", "tai-exec:" + strings.Repeat("0", 32) + ":end\n", Stdout, nil, false},
		{"end with a word", mark + "end x\n", mark + "end x\n", Stdout, nil, false},
		{"unknown word", mark + "foo\n" + mark + "\n", mark + "foo\n" + mark + "\n", Stdout, nil, false},
		{
			"exited", "a" + mark + "exited 3\nb" + mark + "end\n", "ab", Stderr,
			[]Event{{Kind: Exited, Stream: Stderr, Code: 3}, {Kind: EndOfStream, Stream: Stderr}},
			true,
		},
		{"exited on stdout", mark + "exited 3\n", mark + "exited 3\n", Stdout, nil, false},
		{"exited oddly", mark + "exited 03\n" + mark + "exited 256\n" + mark + "exited\n", mark + "exited 03\n" + mark + "exited 256\n" + mark + "exited\n", Stderr, nil, false},
		{
			"refused", mark + "refused no room\n" + mark + "end\n", "tai-exec: no room\n", Stderr,
			[]Event{{Kind: Refused, Stream: Stderr, Reason: "no room"}, {Kind: EndOfStream, Stream: Stderr}},
			true,
		},
		{"refused too late", "x" + mark + "refused no room\n", "x" + mark + "refused no room\n", Stderr, nil, false},
		{"refused on stdout", mark + "refused no room\n", mark + "refused no room\n", Stdout, nil, false},
		{"refused for nothing", mark + "refused\n" + mark + "refused \n", mark + "refused\n" + mark + "refused \n", Stderr, nil, false},
		{"no line end for long", mark + strings.Repeat("x", 5000), mark + strings.Repeat("x", 5000), Stdout, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{1, 2, 3, 7, 41, 42, 43, 1 << 20} {
				content, events, complete := feed(c.stream, c.text, size)
				if content != c.want || complete != c.complete {
					t.Errorf("pieces of %d: content %q, want %q; complete %v", size, content, c.want, complete)
				}
				if !slices.Equal(events, c.events) {
					t.Errorf("pieces of %d: events %v, want %v", size, events, c.events)
				}
			}
		})
	}
}

// TestD27_FilterForgedEnd: an end that more follows was content. Whether it was announced
// meanwhile depends on where the pieces end; content and completeness do not.
func TestD27_FilterForgedEnd(t *testing.T) {
	forged := "a" + mark + "end\n" + "b" + mark + "end\n" + mark + "end\n"
	for size := 1; size < len(forged)+1; size++ {
		if content, _, complete := feed(Stdout, forged, size); content != "a"+mark+"end\nb"+mark+"end\n" || !complete {
			t.Errorf("pieces of %d: content %q, complete %v", size, content, complete)
		}
		if content, _, complete := feed(Stdout, forged+"c", size); content != forged+"c" || complete {
			t.Errorf("pieces of %d: content %q, complete %v", size, content, complete)
		}
	}
}

func TestD27_FilterCompleteNeedsBoth(t *testing.T) {
	f := NewFilter(fid)
	f.Feed(Stdout, []byte(mark+"end\n"))
	if f.Complete() {
		t.Error("complete with stdout alone")
	}
	f.Feed(Stderr, []byte(mark+"end\n"))
	if !f.Complete() {
		t.Error("not complete with both")
	}
	if got, _ := f.Feed(Stdout, []byte("x")); string(got) != mark+"end\nx" || f.Complete() {
		t.Errorf("content %q, complete %v", got, f.Complete())
	}
}

// TestD27_FilterCopiesNothing: the common case hands the caller's own bytes back.
func TestD27_FilterCopiesNothing(t *testing.T) {
	f := NewFilter(fid)
	p := bytes.Repeat([]byte("some tai-text tai-exec: here\n"), 1000)
	if n := testing.AllocsPerRun(100, func() { f.Feed(Stdout, p) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzD27_Filter: whatever a command writes around the wrapper's own words, in whatever
// pieces it arrives, comes out as it was.
func FuzzD27_Filter(f *testing.F) {
	f.Add("hello", "more", uint8(3), uint8(200), true, true)
	f.Add("tai-exec:", mark, uint8(1), uint8(1), false, true)
	f.Add(mark+"end\n", mark+"exited 2\n", uint8(9), uint8(40), true, false)
	f.Add("", "", uint8(50), uint8(0), true, true)
	f.Fuzz(func(t *testing.T, before, after string, first, rest uint8, exited, ended bool) {
		if strings.Contains(before+after, mark+"exited") || strings.Contains(before+after, mark+"refused") {
			return // the command's own lies, which TestD27_Filter has
		}
		text, want := before, before+after
		if exited {
			text += mark + "exited 7\n"
		}
		text += after
		if ended {
			text += mark + "end\n"
		} else if strings.HasSuffix(want, mark+"end\n") || endsLikeMarker(want) {
			return // cannot be told from a marker, whole or cut
		}
		if exited && endsLikeMarker(before) || endsLikeMarker(want) {
			return // glued to ours, it makes another text
		}
		content, events, complete := feed(Stderr, text, int(first), int(rest))
		if content != want || complete != ended {
			t.Errorf("got %q, want %q; complete %v, want %v", content, want, complete, ended)
		}
		n := 0
		for _, e := range events {
			if e.Kind == Exited && e.Code == 7 {
				n++
			}
		}
		if exited != (n == 1) {
			t.Errorf("%d exited events in %v", n, events)
		}
	})
}

// endsLikeMarker says whether a text ends in a marker that has no line end yet.
func endsLikeMarker(s string) bool {
	i := strings.LastIndex(s, mark)
	return i >= 0 && !strings.Contains(s[i:], "\n")
}

func BenchmarkFilter(b *testing.B) {
	p := bytes.Repeat([]byte("total time: 12 ms, state ok, attempts 3\n"), 1600)
	f := NewFilter(fid)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		f.Feed(Stdout, p)
	}
}

func ExampleFilter() {
	f := NewFilter(fid)
	content, _ := f.Feed(Stdout, []byte("hello\ntai-exec:"+fid+":en"))
	fmt.Printf("%q %v\n", content, f.Complete())
	content, _ = f.Feed(Stdout, []byte("d\n"))
	f.Feed(Stderr, []byte("tai-exec:"+fid+":end\n"))
	fmt.Printf("%q %v\n", content, f.Complete())
	// Output:
	// "hello\n" false
	// "" true
}
