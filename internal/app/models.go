package app

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/catalog"
	"github.com/rolecall/rolecall/model/replay"
	"github.com/rolecall/rolecall/model/retry"
	"github.com/rolecall/rolecall/model/script"
)

// modelSet holds the models of a configuration by name. For each declared model it has
// the model or the error why it cannot be used. It is immutable.
type modelSet struct {
	byName      map[string]model.Model
	errors      map[string]error
	defaultName string                   // the organization's model
	single      map[string]declaredModel // without fallbacks

	notes        []string // missing keys, for the operator
	countsTokens bool     // whether a model in use counts tokens; scripts, recordings and people do not
}

// declaredModel is a model without its fallbacks, and its declaration.
type declaredModel struct {
	model.Model
	decl config.Model
}

// find returns the model with this name; "" is the organization's.
func (m *modelSet) find(name string) (model.Model, error) {
	if name == "" {
		name = m.defaultName
	}
	if found, ok := m.byName[name]; ok {
		return found, nil
	}
	if err, ok := m.errors[name]; ok {
		return nil, err
	}
	if name == "" {
		return nil, errcode.New(errcode.InvalidConfig, "%s", noModel)
	}
	return nil, errcode.New(errcode.InvalidConfig, "no model %q is declared; add a document with kind: model, name: %s", name, name)
}

// has reports whether the configuration declares a model of this name; "" is the default.
func (m *modelSet) has(name string) bool {
	if name == "" {
		return m.defaultName != ""
	}
	return m.byName[name] != nil || m.errors[name] != nil
}

// noModel is the error for an organization without a model.
const noModel = "no model is configured for this organization. Use -f with a configuration that declares one:\n" + modelExample

// modelExample is the smallest configuration that agents can run with.
const modelExample = `  kind: organization
  name: mine
  model: script
  ---
  kind: model
  name: script
  type: script
  file: agents.js
For a language model, replace type and file with
  type: openai
  model: qwen3
  baseURL: http://127.0.0.1:11434/v1
"rolecall demo" needs no configuration`

// checkRootModel returns an error unless a configuration sets a usable model for root.
func (m *modelSet) checkRootModel(cfg *config.Config) error {
	_, err := m.find("")
	if err == nil || m.defaultName != "" {
		return err
	}
	missing, advice := "the configuration has no document of kind: organization, which names the model of root. Add one", "  kind: organization\n  name: mine\n"
	if cfg.Organization.Name != "" {
		missing, advice = cfg.Organization.Pos.String()+": the organization "+cfg.Organization.Name+" names no model for root. Add one", ""
	}
	if len(cfg.Models) == 0 {
		return errcode.New(errcode.InvalidConfig, "%s, and a document of kind: model:\n%s", missing, modelExample)
	}
	return errcode.New(errcode.InvalidConfig, "%s:\n%s  model: %s", missing, advice, cfg.Models[0].Name)
}

// newModelSet constructs the models of a configuration and reuses those whose
// declaration has not changed. A model without its API key only fails the requests to
// it.
func (a *App) newModelSet(cfg *config.Config) (*modelSet, []*yamldoc.Error) {
	m := &modelSet{byName: map[string]model.Model{}, errors: map[string]error{}, single: map[string]declaredModel{}, defaultName: cfg.Organization.Model}
	var faults []*yamldoc.Error
	for _, d := range cfg.Models {
		if isFileModel(d) && d.Source == nil || d.Type == config.ModelFirstAvailable { // config.LoadFiles has reported the former
			continue
		}
		if !d.HasKey() {
			m.errors[d.Name] = missingKeyError(d, cfg)
			continue
		}
		one, err := a.reuseModel(d)
		if err != nil {
			faults = append(faults, cfg.ErrorAt(d.Pos, "file", faultText(err), ""))
			continue
		}
		m.single[d.Name] = one
	}
	for _, d := range cfg.Models {
		chosen, _ := cfg.ChooseModel(d.Name)
		if found := a.withFallbacks(cfg, chosen, m.single); found != nil {
			m.byName[d.Name] = a.recordings.wrap(chosen.Type, found)
		} else if err := m.errors[chosen.Name]; err != nil {
			m.errors[d.Name] = err
		}
	}
	m.notes = m.missingKeys(cfg)
	m.countsTokens = slices.ContainsFunc(cfg.UsedModels(), func(d config.Model) bool { return !isFileModel(d) && d.Type != config.ModelHuman })
	return m, faults
}

// reuseModel returns the active model with the same declaration, or constructs one.
func (a *App) reuseModel(d config.Model) (declaredModel, error) {
	d.Pos = yamldoc.Pos{}
	if old, ok := a.models.Load().single[d.Name]; ok && reflect.DeepEqual(old.decl, d) {
		return old, nil
	}
	made, err := a.newModel(d)
	return declaredModel{made, d}, err
}

// isFileModel reports whether a model consists of a file only.
func isFileModel(d config.Model) bool {
	return d.Type == config.ModelScript || d.Type == config.ModelReplay
}

// newModel constructs a model without its fallbacks.
func (a *App) newModel(d config.Model) (model.Model, error) {
	switch d.Type {
	case config.ModelScript:
		return script.Config{Workers: a.scripts, CheckLater: a.options.CheckScriptsLater}.New(d.File, d.Source)
	case config.ModelReplay:
		return replay.New(d.File, d.Source)
	case config.ModelHuman:
		return a.humanModel()
	}
	p, ok := catalog.FindProvider(d.Type)
	if !ok {
		return nil, errcode.New(errcode.InvalidConfig, "model %q: there is no provider of type %q", d.Name, d.Type)
	}
	c := keyConfig{
		build: func(key yamldoc.Secret) model.Model { d := d; d.Key = key; return a.newClient(p, d) },
		hide:  func(key yamldoc.Secret) { a.hideKey(fetchedKey{d.Name, string(key)}) },
		log:   a.options.Log,
	}
	switch {
	case d.KeyFile != "":
		c.read = func(context.Context) (yamldoc.Secret, error) { return d.ReadKey() }
	case d.KeyCommand != nil:
		c.refresh, c.retry = d.KeyCommand.Refresh, keyRetryDelay
		c.read = func(ctx context.Context) (yamldoc.Secret, error) {
			return runKeyCommand(ctx, *d.KeyCommand, a.secrets.redactor())
		}
	default:
		return a.newClient(p, d), nil
	}
	return newKeyModel(d.Name, d.Key, c), nil
}

// hideKey registers a key that a model has read as a secret.
func (a *App) hideKey(k fetchedKey) {
	a.recordings.addKey(k)
	a.secrets.addKey(k)
}

// newClient constructs the client of a provider, with retries.
func (a *App) newClient(p catalog.Provider, d config.Model) model.Model {
	settings := d.ProviderConfig()
	return retry.New(p.New(settings), retry.Config{
		Name: d.Name, Concurrency: d.Concurrency, Log: a.options.Log, Secrets: settings.Secrets(),
		Prices: model.TokenPrices{Input: model.Money(d.Prices.Input), Output: model.Money(d.Prices.Output), Cached: model.Money(d.Prices.Cached), Currency: d.Prices.Currency},
	})
}

// humanModel returns the model of the person at the terminal; all models of type
// human are the same one.
func (a *App) humanModel() (model.Model, error) {
	if a.options.Human == nil {
		return nil, errcode.New(errcode.InvalidConfig, "a model of type human needs a terminal")
	}
	if a.human == nil {
		a.human = a.options.Human()
	}
	return a.human, nil
}

// withFallbacks combines a model with its fallbacks. It returns nil if none of them is
// usable.
func (a *App) withFallbacks(cfg *config.Config, d config.Model, single map[string]declaredModel) model.Model {
	var list []retry.Named
	var missing []string
	for _, name := range append([]string{d.Name}, d.Fallback...) {
		chosen, _ := cfg.ChooseModel(name)
		one, ok := single[chosen.Name]
		switch {
		case !ok:
			missing = append(missing, name)
		case !slices.ContainsFunc(list, func(l retry.Named) bool { return l.Name == chosen.Name }): // which names of type first-available may repeat
			list = append(list, retry.Named{Name: chosen.Name, Model: one.Model})
		}
	}
	if len(list) == 0 {
		return nil
	}
	found := list[0].Model
	if len(list) > 1 {
		found = retry.NewFallback(a.options.Log, list[0], list[1:]...)
	}
	if len(missing) > 0 {
		found = partialFallback{model.WindowWrapper{Model: found}, "not used, no API key: " + strings.Join(missing, ", ")}
	}
	return found
}

// missingKeyError returns the error for a model without its API key. It lists three
// ways to continue.
func missingKeyError(d config.Model, cfg *config.Config) error {
	others := []string{}
	for _, other := range cfg.Models {
		if other.HasKey() && other.Type != config.ModelFirstAvailable {
			others = append(others, other.Name)
		}
	}
	third := "declare another model, such as one of type script, and set it as the organization's model"
	if len(others) > 0 {
		third = "model: " + others[0] + "   in the organization, or wherever " + d.Name + " is used; usable now: " + strings.Join(others, ", ")
	}
	return errcode.New(errcode.InvalidConfig, `model %q needs an API key and the variable %s is not set. Do one of these:
  export %s=…   the key of your account
  baseURL: http://127.0.0.1:11434/v1   in a model of type openai: your own server, which needs no key
  %s
"rolecall demo" needs no key`, d.Name, d.KeyFrom, d.KeyFrom, third)
}

// ListNotes returns notes for the operator. There is a note for each active model without an API
// key, and for each source that this build cannot use. There is also a note for each tool that is
// not offered, and for each unknown name in a rule of a role.
func (a *App) ListNotes() []string {
	a.configMu.Lock()
	defer a.configMu.Unlock()
	return slices.Concat(a.models.Load().notes, sourceNotes(a.current), hoursNotes(a.current), toolNotes(a.current), a.itemNotes(), a.ruleNotes())
}

// CountsTokens reports whether an active model counts tokens. Scripts and recordings
// do not.
func (a *App) CountsTokens() bool { return a.models.Load().countsTokens }

// modelSecrets lists the secrets of a configuration's models, which no recording may
// contain.
func modelSecrets(cfg *config.Config) (list []string) {
	for _, d := range cfg.Models {
		for _, secret := range d.ProviderConfig().Secrets() {
			if secret != "" {
				list = append(list, secret)
			}
		}
	}
	return list
}
