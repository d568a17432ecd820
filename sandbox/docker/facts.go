package docker

import (
	"context"
	"path"
	"time"

	"caisson/sandbox"
)

// imageFacts is what a session needs to know of its image before it is made.
type imageFacts struct {
	user          account
	passwd, group []byte // what to put in the image's place; nil where it is right
	ownsWorkspace bool   // a fresh volume comes with the right owner, by copy-up
	bash          bool
}

// bashPlaces is where an image may have bash.
var bashPlaces = []string{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"}

// examination is one look into an image. Concurrent creates share it.
type examination struct {
	done  chan struct{}
	facts imageFacts
	err   error
}

// facts returns what is known of the image, and finds it out the first time, in
// a container that is made for it and never started: an image cannot be looked
// into without one, and a session's labels have to say it from the start. A look
// goes on when the caller that began it goes away.
func (p *Provider) facts(ctx context.Context, img engineImage) (imageFacts, error) {
	look := p.examination(img)
	select {
	case <-look.done:
		return look.facts, look.err
	case <-ctx.Done():
		return imageFacts{}, p.failed("look into the image", ctx.Err())
	}
}

func (p *Provider) examination(img engineImage) *examination {
	p.images.mu.Lock()
	defer p.images.mu.Unlock()
	if look, ok := p.images.facts[img.key()]; ok {
		return look
	}
	look := &examination{done: make(chan struct{})}
	if p.images.facts == nil {
		p.images.facts = map[string]*examination{}
	}
	p.images.facts[img.key()] = look
	p.work.Go(func() {
		ctx, cancel := context.WithTimeout(p.life, createLimit)
		defer cancel()
		look.facts, look.err = p.examine(ctx, img)
		if look.err != nil {
			p.images.mu.Lock()
			delete(p.images.facts, img.key()) // the next create looks again
			p.images.mu.Unlock()
		}
		close(look.done)
	})
	return look
}

// examine looks into the image through the archive API of a container that is
// not started.
func (p *Provider) examine(ctx context.Context, img engineImage) (f imageFacts, err error) {
	id, err := p.createExaminee(ctx, img)
	if err != nil {
		return imageFacts{}, err
	}
	defer func() {
		ctx, cancel := cleanup(ctx)
		defer cancel()
		if rmErr := p.remove(ctx, id); rmErr != nil {
			// What was seen holds all the same; a later look removes it.
			p.log.Warn("a container that was looked into could not be removed", "container", id, "error", rmErr)
		}
	}()
	passwd, err := p.readSmall(ctx, id, "/etc/passwd")
	if err != nil {
		return imageFacts{}, err
	}
	group, err := p.readSmall(ctx, id, "/etc/group")
	if err != nil {
		return imageFacts{}, err
	}
	who, err := img.account(parsePasswd(passwd), parseGroup(group))
	if err != nil {
		return imageFacts{}, err
	}
	if f.ownsWorkspace, err = p.writable(ctx, id, workspacePath, who.account); err != nil {
		return imageFacts{}, err
	}
	homeOK := false
	if who.home != "" && path.IsAbs(who.home) && who.home != "/" {
		if homeOK, err = p.writable(ctx, id, who.home, who.account); err != nil {
			return imageFacts{}, err
		}
	}
	if !homeOK {
		who.home = workspacePath
	}
	if f.bash, err = p.hasAny(ctx, id, bashPlaces); err != nil {
		return imageFacts{}, err
	}
	f.user = who.account
	f.passwd, f.group = who.entries(passwd, group)
	return f, nil
}

// createExaminee makes the container that is looked into. It carries no session
// label, and one that a crash left is removed by the next look.
func (p *Provider) createExaminee(ctx context.Context, img engineImage) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, createLimit)
	defer cancel()
	if err := p.sweepExaminees(ctx); err != nil {
		p.log.Warn("left-over containers could not be removed", "error", err)
	}
	config, hostConfig, netConfig := createBody(blueprint{
		imageID: img.id, user: account{uid: 1, gid: 1}, network: networkNone, seccomp: p.seccomp,
		labels: p.examineeLabels(), pids: ptr(int64(1)),
	})
	made, err := p.api.ContainerCreate(ctx, config, hostConfig, netConfig, nil, examinePrefix+sandbox.NewExecID()[len("exec_"):])
	if err != nil {
		return "", p.createFailed(err)
	}
	return made.ID, nil
}

// examineeLabels mark a container that is made to be looked at and removed.
func (p *Provider) examineeLabels() map[string]string {
	return map[string]string{
		labelSandbox: "", labelRole: roleExamine, labelID: "", labelInstance: p.cfg.Instance,
		labelCreated: time.Now().UTC().Format(time.RFC3339Nano), labelVersion: p.cfg.Version,
	}
}

const (
	examinePrefix = containerPrefix + "examine-"
	// examineAge is how old a container of a look is when its server has surely
	// given it up.
	examineAge = 10 * time.Minute
)

func (p *Provider) sweepExaminees(ctx context.Context) error {
	now, err := p.engineTime(ctx)
	if err != nil {
		return err
	}
	own := func(instance string) bool { return instance == p.cfg.Instance }
	_, err = p.pruneHelpers(ctx, remains{before: now.Add(-examineAge), of: own})
	return err
}
