package app

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/org"
)

// activeConfig is the configuration in service, as tasks and clients need it.
type activeConfig struct {
	config *config.Config
	digest func() string
	// keyless lists the names of the models that have users and no API key. It looks for them
	// once, because readiness needs no token.
	keyless func() []string
	// record stores the files, the first time it is called, and returns their hash.
	record func() (string, error)
}

// setActive makes cfg the configuration that new tasks are recorded with.
func (a *App) setActive(cfg *config.Config) {
	models := a.models.Load()
	a.active.Store(&activeConfig{
		config: cfg, digest: sync.OnceValue(cfg.Digest), keyless: sync.OnceValue(func() []string { return models.keyless(cfg) }),
		record: sync.OnceValues(func() (string, error) { return a.recordConfig(cfg) }),
	})
}

// recordConfig stores the files of a configuration and returns their hash.
func (a *App) recordConfig(cfg *config.Config) (string, error) {
	files, err := json.Marshal(cfg.Files)
	if err != nil {
		return "", fmt.Errorf("record the configuration: %w", err)
	}
	hash, err := a.Runtime.ArtifactStore().PutBlob(files)
	if err != nil {
		return "", fmt.Errorf("record the configuration: %w", err)
	}
	return hash, nil
}

// configDigest returns the digest of the configuration in service; "" without one.
func (a *App) configDigest() string {
	if active := a.active.Load(); active != nil {
		return active.digest()
	}
	return ""
}

// startClientTask begins a task that a client sends to this process. It is recorded with the
// configuration in service.
func (a *App) startClientTask(ctx context.Context, spec org.TaskSpec) (id identity.TaskID, err error) {
	if _, err := a.model(""); err != nil {
		return "", err
	}
	if active := a.active.Load(); active != nil {
		if spec.Config, err = active.record(); err != nil {
			return "", err
		}
	}
	id, err = a.Runtime.StartTask(ctx, spec)
	if errcode.CodeOf(err) == errcode.RoleNotFound && spec.Caller.Kind == identity.Operator {
		err = errcode.New(errcode.RoleNotFound, "%s", textutil.AddHint(errcode.Message(err), a.Runtime.Org().SuggestRole(spec.Role)))
	}
	return id, err
}
