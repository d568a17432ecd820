package principal

import "time"

// Refusal is why a request is not taken: the answer that HTTP has for it. Text
// reaches the client and repeats nothing that it has sent; Err is for the log
// and never holds a token.
type Refusal struct {
	Status     int           // 400, 401, 403, 429 or 503
	Challenge  string        // WWW-Authenticate, with status 401 and 403
	Text       string        // a sentence for whoever called
	RetryAfter time.Duration // zero: unknown
	Err        error         // the cause
}

// Error gives the text for logs.
func (r *Refusal) Error() string {
	if r.Err != nil {
		return r.Text + ": " + r.Err.Error()
	}
	return r.Text
}

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }
