package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/model/catalog"
	"github.com/rolecall/rolecall/model/probe"
	"github.com/rolecall/rolecall/modules/toolbox"
)

// ServiceProbe is the result of contacting a model, an MCP server or a source.
type ServiceProbe struct {
	Kind string // of its document
	Name string
	Err  error         // why it cannot be used; nil if it answers
	Skip string        // why it was not contacted; "" if it was
	Time time.Duration // until it answered
}

// Limits of ProbeServices.
const (
	maxProbes    = 16          // at once
	probeTimeout = time.Minute // of one
)

// ProbeServices contacts the models, the MCP servers and the sources of a
// valid configuration, and returns one result for each in this order. It puts nothing in
// service.
func (a *App) ProbeServices(ctx context.Context, cfg *config.Config) []ServiceProbe {
	var list []ServiceProbe
	var contacts []func(context.Context) error
	add := func(kind, name, skip string, contact func(context.Context) error) {
		list, contacts = append(list, ServiceProbe{Kind: kind, Name: name, Skip: skip}), append(contacts, contact)
	}
	for _, d := range cfg.Models {
		p, ok := catalog.FindProvider(d.Type)
		if d.Type == config.ModelFirstAvailable {
			chosen, _ := cfg.ChooseModel(d.Name)
			add("model", d.Name, "it stands for model "+chosen.Name, nil)
			continue
		}
		if !ok {
			add("model", d.Name, "there is nothing to ask, because models of type "+d.Type+" answer without a service of their own", nil)
			continue
		}
		add("model", d.Name, skipModel(cfg, d), func(ctx context.Context) error { return contactModel(ctx, p, d) })
	}
	for _, m := range ModulesOf(cfg) {
		if m.Type == kindServer {
			add(kindServer, m.Name, "", func(ctx context.Context) error { return a.contactServer(ctx, cfg, m) })
		}
	}
	for _, s := range cfg.Sources {
		add(kindSource, s.Name, "", func(ctx context.Context) error {
			network := toolbox.Network{Private: cfg.Network.PrivateAddresses}
			return toolbox.CheckConnection(ctx, toolbox.Config{Source: s, Network: func() toolbox.Network { return network }})
		})
	}
	secret := redact.New(configSecrets(cfg)...)
	runProbes(ctx, list, contacts)
	for i := range list {
		list[i].Err = secret.RedactError(list[i].Err)
	}
	return list
}

// runProbes contacts what is not skipped, concurrently, and writes the results to list.
func runProbes(ctx context.Context, list []ServiceProbe, contacts []func(context.Context) error) {
	places := make(chan struct{}, maxProbes)
	var all sync.WaitGroup
	for i, contact := range contacts {
		if list[i].Skip != "" {
			continue
		}
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			limited, cancel := context.WithTimeout(ctx, probeTimeout)
			defer cancel()
			began := time.Now()
			err := contact(limited)
			list[i].Time = time.Since(began)
			switch {
			case err == nil:
			case limited.Err() != nil && ctx.Err() == nil:
				list[i].Err = fmt.Errorf("no answer within %v", probeTimeout)
			default:
				list[i].Err = errors.New(errorReason(err))
			}
		})
	}
	all.Wait()
}

// skipModel returns why a model is not asked: it is not used and has no key.
func skipModel(cfg *config.Config, d config.Model) string {
	used := slices.ContainsFunc(cfg.UsedModels(), func(u config.Model) bool { return u.Name == d.Name })
	if d.HasKey() || used {
		return ""
	}
	return "not used, and " + d.KeyFrom + " is not set"
}

// contactModel asks a model one question.
func contactModel(ctx context.Context, p catalog.Provider, d config.Model) error {
	if !d.HasKey() {
		return errcode.New(errcode.InvalidConfig, "%s is not set", d.KeyFrom)
	}
	d, err := withKey(ctx, d)
	if err != nil {
		return err
	}
	return probe.AskText(ctx, p.New(d.ProviderConfig())).Err
}

// contactServer connects to an MCP server and lists its tools.
func (a *App) contactServer(ctx context.Context, cfg *config.Config, m config.Module) error {
	made, fault := a.newServerModule(cfg, m)
	if fault != nil {
		return fault
	}
	staged, err := a.loader.StageModule(ctx, made)
	if err != nil {
		return err
	}
	return staged.Discard(ctx)
}
