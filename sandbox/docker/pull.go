package docker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/image"

	"caisson/sandbox"
)

const (
	// pullLimit bounds a pull. It is no caller's: a pull goes on when the call
	// that began it has ended (bug IM-01).
	pullLimit = 30 * time.Minute
	// pullReport is how often a waiting caller hears how far a pull has come.
	pullReport = time.Second
	// pullRetry is when a caller that could not wait should ask again.
	pullRetry = 15 * time.Second
)

// pulls are the pulls under way, at most one for each reference.
type pulls struct {
	mu      sync.Mutex
	running map[string]*pull
}

// pull is one pull under way.
type pull struct {
	done chan struct{}
	err  error // set before done is closed

	mu     sync.Mutex
	layers map[string]layerProgress
}

type layerProgress struct{ Current, Total int64 }

// pull brings an image onto the engine and waits for it. When ctx ends first,
// the pull goes on and the error is KindImagePulling; the next call joins it.
func (p *Provider) pull(ctx context.Context, ref string, progress sandbox.Progress) error {
	job := p.pullJob(ref)
	tick := time.NewTicker(pullReport)
	defer tick.Stop()
	for {
		if progress != nil {
			progress(job.stage())
		}
		select {
		case <-job.done:
			return job.err
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return p.failed("pull the image", ctx.Err())
			}
			e := sandbox.Errorf("pull the image", sandbox.KindImagePulling, "the image %q is still being pulled and goes on; ask again", ref)
			e.RetryAfter = pullRetry
			return e
		}
	}
}

// pullJob joins the pull of ref that is under way, or begins one.
func (p *Provider) pullJob(ref string) *pull {
	ps := &p.pulls
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if job, ok := ps.running[ref]; ok {
		return job
	}
	job := &pull{done: make(chan struct{}), layers: map[string]layerProgress{}}
	if ps.running == nil {
		ps.running = map[string]*pull{}
	}
	ps.running[ref] = job
	p.work.Go(func() {
		ctx, cancel := context.WithTimeout(p.life, pullLimit)
		defer cancel()
		job.err = p.runPull(ctx, ref, job)
		ps.mu.Lock()
		delete(ps.running, ref)
		ps.mu.Unlock()
		close(job.done)
		p.log.Info("pull ended", "image", ref, "error", job.err)
	})
	return job
}

func (p *Provider) runPull(ctx context.Context, ref string, job *pull) error {
	// The client names the tag "latest" where the reference names none, so that
	// the engine does not pull every tag (PUL-5).
	body, err := p.api.ImagePull(ctx, ref, image.PullOptions{})
	if err == nil {
		defer func() { _ = body.Close() }()
		err = job.read(body)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return sandbox.Errorf("pull the image", sandbox.KindImagePullFailed, "the pull of %q took more than %v and was ended", ref, pullLimit).Because(err)
	}
	if kind, text, ok := p.linkFailure(err); ok {
		return sandbox.Errorf("pull the image", kind, "%s", text).Because(err)
	}
	return pullFailed(ref, err)
}

// read follows the engine's progress stream to its end. Errors come in-band,
// after a status that promised success (PUL-4).
func (job *pull) read(body io.Reader) error {
	decoder := json.NewDecoder(body)
	for {
		var message struct {
			ID       string
			Status   string
			Error    string
			Progress layerProgress `json:"progressDetail"`
		}
		if err := decoder.Decode(&message); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if message.Error != "" {
			return errors.New(message.Error)
		}
		job.layer(message.ID, message.Status, message.Progress)
	}
}

func (job *pull) layer(id, status string, at layerProgress) {
	job.mu.Lock()
	defer job.mu.Unlock()
	switch known, ok := job.layers[id]; {
	case status == "Downloading" && at.Total > 0:
		job.layers[id] = at
	case ok && (status == "Download complete" || status == "Pull complete"):
		job.layers[id] = layerProgress{known.Total, known.Total}
	}
}

func (job *pull) stage() sandbox.Stage {
	job.mu.Lock()
	defer job.mu.Unlock()
	s := sandbox.Stage{Text: "pulling the image"}
	for _, l := range job.layers {
		s.Done += l.Current
		s.Total += l.Total
	}
	return s
}

// pullFailed gives the registry's reason, in its own words where they are not
// known (bug IM-02).
func pullFailed(ref string, err error) error {
	reason := afterColon(err.Error())
	kind := sandbox.KindImagePullFailed
	switch {
	case strings.Contains(reason, "no space left on device"):
		return sandbox.Errorf("pull the image", sandbox.KindNoSpace, "the engine's disk is full").Because(err)
	case strings.Contains(reason, "invalid reference format"):
		return sandbox.Invalid("image", "%q is no image reference", ref).Because(err)
	case strings.Contains(reason, "manifest unknown"), strings.Contains(reason, "not found"), strings.Contains(reason, "no matching manifest"),
		// Engine 28 does not read an answer that is not marked as JSON.
		strings.Contains(reason, `"MANIFEST_UNKNOWN"`), strings.Contains(reason, `"NAME_UNKNOWN"`):
		kind = sandbox.KindImageNotFound
	}
	if words := networkFault(reason); words != "" {
		reason = words
	}
	return sandbox.Errorf("pull the image", kind, "cannot pull %q: %s", ref, oneLine(reason, 300)).Because(err)
}

// networkFault puts a failure between the engine and the registry into words
// without addresses. The engine's own would show its network, and tell a caller
// who names addresses as registries which of its neighbours listen.
func networkFault(reason string) string {
	switch {
	case mentions(reason, []string{"no such host"}), mentions(reason, []string{"dial", "lookup "}):
		return "the engine cannot resolve the name of its registry"
	case mentions(reason, []string{"x509:"}), mentions(reason, []string{"tls:"}):
		return "the engine does not trust the registry's certificate, or the registry speaks no TLS"
	case mentions(reason, []string{"dial "}), mentions(reason, []string{"timeout"}), mentions(reason, []string{"connection re"}),
		mentions(reason, []string{"request canceled"}), mentions(reason, []string{"malformed HTTP"}), mentions(reason, []string{"server gave HTTP response"}):
		return "the engine cannot reach its registry"
	}
	return ""
}

// oneLine shortens foreign text and takes its control characters out.
func oneLine(s string, most int) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
