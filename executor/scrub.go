package executor

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"caisson/sandbox"
)

const (
	// leastSecret is the shortest value that is scrubbed: shorter ones are in
	// every text.
	leastSecret = 4
	// leastEncoded is the shortest value whose encoded forms are, for the same
	// reason.
	leastEncoded = 8
	// scrubbed stands in the place of a value.
	scrubbed = "[redacted]"
)

// scrubber takes the values of a rule's environment out of what comes back from a
// tool (TX-2, AGT-4): as they are, and as base64, hex, and in an address. It is
// read-only once made. What a tool does to a value beyond that (cuts it, turns it
// round, encrypts it) is not undone: a tool that wants to tell its credentials can.
type scrubber struct {
	all     *strings.Replacer // nil: there is nothing to take out
	longest int               // of the forms, in bytes
}

func newScrubber(env map[string]sandbox.Secret) *scrubber {
	var forms []string
	for _, secret := range env {
		value := secret.Reveal()
		forms = append(forms, spellings(value)...)
		if lines := strings.Split(value, "\n"); len(lines) > 1 { // a key in PEM, told line by line
			for _, line := range lines {
				if line = strings.TrimSpace(line); len(line) >= 2*leastEncoded && !strings.HasPrefix(line, "-----") {
					forms = append(forms, spellings(line)...)
				}
			}
		}
	}
	if len(forms) == 0 {
		return &scrubber{}
	}
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	forms = slices.Compact(forms)
	pairs := make([]string, 0, 2*len(forms)) // the longest first: the first that matches is taken
	for _, form := range forms {
		pairs = append(pairs, form, scrubbed)
	}
	return &scrubber{all: strings.NewReplacer(pairs...), longest: len(forms[0])}
}

// spellings are the forms in which a value is looked for.
func spellings(value string) []string {
	if len(value) < leastSecret {
		return nil
	}
	forms := []string{value}
	if quoted, err := json.Marshal(value); err == nil { // a JSON text inside a text
		forms = append(forms, string(quoted[1:len(quoted)-1]))
	}
	if len(value) < leastEncoded {
		return forms
	}
	forms = append(forms, url.QueryEscape(value), url.PathEscape(value), hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value))))
	return append(forms, inBase64(value)...)
}

// inBase64 gives what is sure of a value's letters, wherever it begins in what is
// encoded: three offsets, two alphabets.
func inBase64(value string) []string {
	var forms []string
	for skip := range 3 {
		// The letters that hold bits of what stands before and behind are left out.
		first := []int{0, 2, 3}[skip]
		whole := (skip + len(value)) / 3 * 4
		padded := append(make([]byte, skip), value...)
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if text := alphabet.EncodeToString(padded); whole-first >= leastEncoded {
				forms = append(forms, text[first:whole])
			}
		}
	}
	return forms
}

// text scrubs a text.
func (s *scrubber) text(text string) string {
	if s.all == nil {
		return text
	}
	return s.all.Replace(text)
}

// bytes scrubs what may be no text.
func (s *scrubber) bytes(data []byte) []byte {
	if s.all == nil || len(data) == 0 {
		return data
	}
	return []byte(s.all.Replace(string(data)))
}

// json scrubs the strings of a JSON value, names of members included, and leaves
// all else as it is, byte for byte.
func (s *scrubber) json(text json.RawMessage) json.RawMessage {
	if s.all == nil || len(text) == 0 {
		return text
	}
	return mapStrings(text, s.text)
}

// result scrubs all that a result holds.
func (s *scrubber) result(r Result) Result {
	if s.all == nil {
		return r
	}
	r.Result, r.DisplayData = s.json(r.Result), s.json(r.DisplayData)
	r.Error, r.VoiceText = s.text(r.Error), s.text(r.VoiceText)
	metadata := make(map[string]json.RawMessage, len(r.Metadata))
	for name, value := range r.Metadata {
		metadata[s.text(name)] = s.json(value)
	}
	r.Metadata = metadata
	r.Files, r.Images = s.files(r.Files), s.files(r.Images)
	return r
}

func (s *scrubber) files(files []File) []File {
	all := slices.Clone(files)
	for i, f := range all {
		all[i] = File{Name: s.text(f.Name), MIMEType: s.text(f.MIMEType), Data: s.bytes(f.Data)}
	}
	return all
}

// mapStrings replaces the strings of a valid JSON text by what change makes of
// them. A string that stays the same stays in its own spelling.
func mapStrings(text []byte, change func(string) string) json.RawMessage {
	var b bytes.Buffer
	for len(text) > 0 {
		start := bytes.IndexByte(text, '"')
		if start < 0 {
			break
		}
		end := start + 1
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(text))
		b.Write(text[:start])
		literal := text[start:end]
		text = text[end:]
		var value string
		if err := json.Unmarshal(literal, &value); err != nil {
			b.Write(literal)
			continue
		}
		if changed := change(value); changed != value {
			writeJSONString(&b, changed)
		} else {
			b.Write(literal)
		}
	}
	b.Write(text)
	return b.Bytes()
}
