package app

import (
	"reflect"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/anthropic"
	"github.com/rolecall/rolecall/model/gemini"
	"github.com/rolecall/rolecall/model/openai"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/replay"
	"github.com/rolecall/rolecall/model/retry"
	"github.com/rolecall/rolecall/model/script"
)

// modelSet is the models that a configuration declares, by name: each is there, or the
// reason why it cannot be used. It never changes.
type modelSet struct {
	byName      map[string]model.Model
	errors      map[string]error
	defaultName string // the organization's
	single      map[string]declaredModel

	notes  []string // what is missing, and hinders nobody yet
	counts bool     // one of those in use counts tokens now, not in a recording
}

// declaredModel is one model, without its fallback, and what it was made of.
type declaredModel struct {
	model.Model
	of config.Model
}

// find gives a model; "" is the organization's.
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
	return nil, errcode.New(errcode.InvalidConfig, "there is no model %q; declare it: kind: model, name: %s", name, name)
}

const noModel = `no model thinks for this organization. Give a configuration with -f that declares one and names it:
  kind: organization
  name: mine
  model: script
  ---
  kind: model
  name: script
  type: script
  file: agents.js
A language model, here or elsewhere, has instead of type and file
  type: openai
  model: qwen3
  baseURL: http://127.0.0.1:11434/v1
"rolecall demo" needs no configuration`

// makeModels makes the models a configuration declares; those that are declared
// as they are now stay the same. One whose key is missing hinders nobody but who
// asks for it.
func (a *App) makeModels(cfg *config.Config) (*modelSet, []*config.Error) {
	r := &modelSet{byName: map[string]model.Model{}, errors: map[string]error{}, single: map[string]declaredModel{}, defaultName: cfg.Organization.Model}
	var faults []*config.Error
	for _, d := range cfg.Models {
		if inFile(d) && d.Source == nil { // Load has said why
			continue
		}
		if d.KeyFrom != "" && d.Key == "" {
			r.errors[d.Name] = missingKey(d, cfg)
			continue
		}
		one, err := a.sameModel(d)
		if err != nil {
			faults = append(faults, cfg.Fault(d.Pos, "file", errcode.Message(err), ""))
			continue
		}
		r.single[d.Name] = one
	}
	for _, d := range cfg.Models {
		if found := a.withFallbacks(d, r.single); found != nil {
			r.byName[d.Name] = a.recordings.wrap(d.Type, found)
		}
	}
	r.notes = r.missingKeys(cfg)
	r.counts = slices.ContainsFunc(cfg.Used(), func(d config.Model) bool { return !inFile(d) && d.Type != "human" })
	return r, faults
}

// sameModel gives the model in force that is made of the same, or makes one.
func (a *App) sameModel(d config.Model) (declaredModel, error) {
	d.Pos = config.Pos{}
	if old, ok := a.models.Load().single[d.Name]; ok && reflect.DeepEqual(old.of, d) {
		return old, nil
	}
	made, err := a.makeModel(d)
	return declaredModel{made, d}, err
}

// inFile says whether a file is all of a model.
func inFile(d config.Model) bool { return d.Type == "script" || d.Type == "replay" }

// makeModel makes one model.
func (a *App) makeModel(d config.Model) (model.Model, error) {
	switch d.Type {
	case "script":
		return script.New(d.File, d.Source)
	case "replay":
		return replay.New(d.File, d.Source)
	case "human":
		return a.humanModel()
	}
	return retry.New(modelClient(d), retry.Config{
		Name: d.Name, Concurrency: d.Concurrency, Log: a.options.Log, Secret: string(d.Key),
		Prices: model.Prices{Input: model.Money(d.Prices.Input), Output: model.Money(d.Prices.Output), Cached: model.Money(d.Prices.Cached)},
	}), nil
}

// modelClient makes the client of a model behind an address.
func modelClient(d config.Model) model.Model {
	c := provider.Config{
		Name: d.Name, Model: d.Model, BaseURL: d.BaseURL, Key: string(d.Key), Stream: d.Stream,
		MaxTokens: d.MaxTokens, Temperature: d.Temperature, Window: d.ContextWindow, Timeout: d.Timeout,
	}
	switch d.Type {
	case "anthropic":
		return anthropic.New(c)
	case "gemini":
		return gemini.New(c)
	}
	return openai.New(c)
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

// withFallbacks puts a model before its fallbacks; nil when none of them can be used.
func (a *App) withFallbacks(d config.Model, single map[string]declaredModel) model.Model {
	var list []retry.Named
	var missing []string
	for _, name := range append([]string{d.Name}, d.Fallback...) {
		if one, ok := single[name]; ok {
			list = append(list, retry.Named{Name: name, Model: one.Model})
		} else {
			missing = append(missing, name)
		}
	}
	if len(list) == 0 {
		return nil
	}
	found := list[0].Model
	if len(list) > 1 {
		found = retry.NewChain(a.options.Log, list[0], list[1:]...)
	}
	if len(missing) > 0 {
		found = partialFallback{model.Wrapper{Model: found}, "not used for want of a key: " + strings.Join(missing, ", ")}
	}
	return found
}

// missingKey says what to do about a model whose key is not there.
func missingKey(d config.Model, cfg *config.Config) error {
	others := []string{}
	for _, other := range cfg.Models {
		if other.KeyFrom == "" || other.Key != "" {
			others = append(others, other.Name)
		}
	}
	third := "declare another model, such as one of type script, and name it as the organization's model"
	if len(others) > 0 {
		third = "model: " + others[0] + "   in the organization, or where " + d.Name + " is named; usable now: " + strings.Join(others, ", ")
	}
	return errcode.New(errcode.InvalidConfig, `model %q needs a key and the variable %s is not set. Three ways to go on:
  export %s=…   the key of your account
  baseURL: http://127.0.0.1:11434/v1   in a model of type openai: a server of your own, which needs none
  %s
"rolecall demo" needs no key`, d.Name, d.KeyFrom, d.KeyFrom, third)
}

// Notes lists what is missing of the models and stops nothing yet, for the operator.
func (a *App) Notes() []string { return a.models.Load().notes }

// CountsTokens reports whether an active model counts tokens now, not in a recording.
func (a *App) CountsTokens() bool { return a.models.Load().counts }

// secretsOf lists what must be written nowhere.
func secretsOf(cfg *config.Config) []string {
	var list []string
	for _, d := range cfg.Models {
		if d.Key != "" {
			list = append(list, string(d.Key))
		}
	}
	return list
}
