package docker

import (
	"context"

	"caisson/sandbox"
)

func (s *Session) Spec() sandbox.Spec { return sandbox.Spec{} }

func (s *Session) Orphans(ctx context.Context) ([]sandbox.Orphan, error) { return nil, nil }
