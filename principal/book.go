package principal

import (
	"crypto/sha256"
	"crypto/subtle"
	"slices"
)

// Book is what one reading of the file says. It is not changed once it has been
// made, so it may be read from any goroutine.
type Book struct {
	entries []entry
}

// entry is a principal and the ways in which it may show who it is.
type entry struct {
	Principal
	digests  [][sha256.Size]byte // of its bearer tokens
	certCN   string              // common name of its client certificate
	subject  string              // sub of its tokens from the issuer
	position int                 // line in the file
}

// Names are the names of all principals, in the order of the file.
func (b *Book) Names() []string {
	names := make([]string, len(b.entries))
	for i, e := range b.entries {
		names[i] = e.Name
	}
	return names
}

// byToken finds the principal of a bearer token. The time it takes tells nothing
// of how near a wrong token is to a right one, nor where in the file the right
// one stands: what is compared are digests, and all of them are (T46).
func (b *Book) byToken(token string) *Principal {
	digest := sha256.Sum256([]byte(token))
	found := -1
	for i := range b.entries {
		for k := range b.entries[i].digests {
			same := subtle.ConstantTimeCompare(digest[:], b.entries[i].digests[k][:])
			found = subtle.ConstantTimeSelect(same, i, found)
		}
	}
	if found < 0 {
		return nil
	}
	return &b.entries[found].Principal
}

func (b *Book) byCertificate(commonName string) *Principal {
	return b.first(func(e entry) bool { return e.certCN != "" && e.certCN == commonName })
}

func (b *Book) bySubject(subject string) *Principal {
	return b.first(func(e entry) bool { return e.subject != "" && e.subject == subject })
}

func (b *Book) first(match func(entry) bool) *Principal {
	i := slices.IndexFunc(b.entries, match)
	if i < 0 {
		return nil
	}
	return &b.entries[i].Principal
}

// gone lists the principals of b that are not in next any more, or that can no
// longer show who they are in every way that they could.
func (b *Book) gone(next *Book) []string {
	var names []string
	for _, e := range b.entries {
		i := slices.IndexFunc(next.entries, func(other entry) bool { return other.Name == e.Name })
		kept := i >= 0 && next.entries[i].certCN == e.certCN && next.entries[i].subject == e.subject
		for _, digest := range e.digests {
			kept = kept && slices.Contains(next.entries[i].digests, digest)
		}
		if !kept {
			names = append(names, e.Name)
		}
	}
	return names
}
