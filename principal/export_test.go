package principal

// HasToken says whether a token is anybody's.
func (b *Book) HasToken(token string) bool { return b.byToken(token) != nil }
