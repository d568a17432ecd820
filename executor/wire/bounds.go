package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The bounds of a result. No client gets more of it than that: it is not worth the
// memory of carrying it further.
const (
	// MostMedia is what the images and files of one result may have together, in
	// bytes, and MostMediaItems how many they may be.
	MostMedia      = 700 << 10
	MostMediaItems = 20

	// MostValue is what the value may have as JSON in bytes: one with more is none that
	// a client could get whole. MostPrinted is what it may have on its way from the
	// worker, where it may be something else to the next reader.
	MostValue   = 1 << 20
	MostPrinted = 3 << 20

	keptValue = 512 << 10 // of the text of one that has more
	mostPart  = 64 << 10  // the error, the voice text, the display data and one entry of the metadata
	mostParts = 256 << 10 // the metadata
)

// leftOut is the entry of the metadata that says what Bounded has left out.
const leftOut = "left_out"

// Bounded is a result without what is over its bounds, as the entry left_out of its
// metadata says: images and files as long as there is room, the beginning and the end
// of a value with more than mostValue bytes, as a text. The worker bounds before it
// prints, and the server what a worker that is not ours has printed.
func Bounded(r Result, mostValue int) Result {
	var left []string
	room, names, bytes := media{items: MostMediaItems, bytes: MostMedia}, []string{}, 0
	for _, files := range []*[]File{&r.Images, &r.Files} {
		*files = slices.DeleteFunc(slices.Clone(*files), func(f File) bool {
			if room.take(f) {
				return false
			}
			names, bytes = append(names, shown(f.Name)), bytes+len(f.Data)
			return true
		})
	}
	if n := len(names); n > 0 {
		left = append(left, fmt.Sprintf("%d images and files with %d bytes (%s): those of one result may be %d, with %d bytes together", n, bytes, strings.Join(names[:min(n, 3)], ", "), MostMediaItems, MostMedia))
	}
	if n := len(r.Result); n > mostValue {
		r.Result = shortened(r.Result)
		left = append(left, fmt.Sprintf("the middle of the result, which has %d bytes; it is given as a text", n))
	}
	if n := len(r.Error); n > mostPart {
		r.Error = middle(r.Error, mostPart)
		left = append(left, fmt.Sprintf("the middle of the error, which has %d bytes", n))
	}
	if n := len(r.VoiceText); n > mostPart {
		r.VoiceText = ""
		left = append(left, fmt.Sprintf("voice_text with %d bytes", n))
	}
	if n := len(r.DisplayData); n > mostPart {
		r.DisplayData = nil
		left = append(left, fmt.Sprintf("display_data with %d bytes", n))
	}
	metadata, n := boundedEntries(r.Metadata)
	if r.Metadata = metadata; n > 0 {
		left = append(left, fmt.Sprintf("%d entries of the metadata", n))
	}
	if len(left) > 0 {
		r.Metadata = maps.Clone(r.Metadata)
		if r.Metadata == nil {
			r.Metadata = map[string]json.RawMessage{}
		}
		r.Metadata[leftOut], _ = json.Marshal(left) // texts can always be written
	}
	return r
}

// media is the room for images and files.
type media struct{ items, bytes int }

func (m *media) take(f File) bool {
	if m.items == 0 || len(f.Data) > m.bytes {
		return false
	}
	m.items, m.bytes = m.items-1, m.bytes-len(f.Data)
	return true
}

// shortened is the beginning and the end of a JSON value: of a text's own letters, or
// of how another value is written.
func shortened(value json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(value, &text) != nil {
		text = string(value)
	}
	for most := keptValue; ; most /= 2 { // escapes may make more of it
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(middle(text, most)) // a text can always be written
		if short := bytes.TrimSpace(b.Bytes()); len(short) <= MostValue || most < mostPart {
			return short
		}
	}
}

// middle takes the middle out of a text that has more than most bytes. Marks stand at
// the cuts: a value of the environment may have been cut in two there, and is looked
// for beside them.
func middle(text string, most int) string {
	if len(text) <= most {
		return text
	}
	front, back := text[:most/2], text[len(text)-most/2:]
	return strings.ToValidUTF8(front, "") + fmt.Sprintf("…\n[%d bytes are left out here]\n…", len(text)-len(front)-len(back)) + strings.ToValidUTF8(back, "")
}

// boundedEntries are the metadata's entries, the shortest first, while there is room;
// left is how many there are besides.
func boundedEntries(all map[string]json.RawMessage) (kept map[string]json.RawMessage, left int) {
	total := 0
	size := func(name string) int { return len(name) + len(all[name]) }
	for name := range all {
		if total += size(name); size(name) > mostPart {
			total = mostParts + 1
		}
	}
	if total <= mostParts {
		return all, 0
	}
	kept, total = map[string]json.RawMessage{}, 0
	for _, name := range slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Or(cmp.Compare(size(a), size(b)), cmp.Compare(a, b)) }) {
		if total += size(name); size(name) > mostPart || total > mostParts {
			break
		}
		kept[name] = all[name]
	}
	return kept, len(all) - len(kept)
}
