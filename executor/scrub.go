package executor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
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
// tool (TX-2, AGT-4): as they are, in their spellings, and the parts that our own cuts
// leave of them. It is read-only once made. What a tool does to a value beyond that
// (cuts it, turns it round, encrypts it) is not undone: a tool that wants to tell its
// credentials can.
type scrubber struct {
	all     *strings.Replacer // nil: there is nothing to take out
	longest int               // of the forms, in bytes
	parts   fragments
	numbers numbers
}

func newScrubber(env map[string]sandbox.Secret) *scrubber {
	var forms, cuttable []string
	var digits numbers
	for name, secret := range env {
		value := secret.Reveal()
		own := spellings(value)
		digits.add(value)
		forms = append(forms, own...)
		if name != "PATH" { // no secret, and its folders stand at the ends of many texts
			cuttable = append(cuttable, own...)
		}
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
	return &scrubber{all: strings.NewReplacer(pairs...), longest: len(forms[0]), parts: newFragments(cuttable), numbers: digits}
}

// text scrubs a text.
func (s *scrubber) text(text string) string {
	if s.all == nil {
		return text
	}
	return s.parts.take(s.all.Replace(text))
}

// name scrubs the name of a member, which nothing of ours has cut.
func (s *scrubber) name(text string) string {
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

// json scrubs the strings and numbers of a JSON value, names of members included, and
// leaves all else as it is, byte for byte.
func (s *scrubber) json(text json.RawMessage) json.RawMessage {
	if s.all == nil || len(text) == 0 {
		return text
	}
	return s.mapped(text)
}

// number says whether a number is one of the values.
func (s *scrubber) number(n float64) bool {
	return s.numbers.has(strconv.FormatFloat(n, 'f', -1, 64))
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
		metadata[s.name(name)] = s.json(value)
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

// mapped is a valid JSON text with its strings, numbers and names of members scrubbed.
// A string that stays the same stays in its own spelling.
func (s *scrubber) mapped(text []byte) json.RawMessage {
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
		s.numbers.scrubbed(&b, text[:start])
		literal := text[start:end]
		text = text[end:]
		var value string
		if err := json.Unmarshal(literal, &value); err != nil {
			b.Write(literal)
			continue
		}
		f := s.text
		if after := bytes.TrimLeft(text, " \t\r\n"); len(after) > 0 && after[0] == ':' {
			f = s.name
		}
		if changed := f(value); changed != value {
			writeJSONString(&b, changed)
		} else {
			b.Write(literal)
		}
	}
	s.numbers.scrubbed(&b, text)
	return b.Bytes()
}
