package app

import (
	"errors"
	"io"
	"maps"
	"time"

	"github.com/rolecall/rolecall/model"
)

// union returns m with the models of old whose names m does not have. It is used
// during a change, while roles of both configurations may call models.
func (m *modelSet) union(old *modelSet) *modelSet {
	both := *m
	both.byName, both.errors = maps.Clone(old.byName), maps.Clone(old.errors)
	if both.byName == nil {
		both.byName, both.errors = map[string]model.Model{}, map[string]error{}
	}
	for name := range m.errors {
		delete(both.byName, name)
	}
	maps.Copy(both.byName, m.byName)
	maps.Copy(both.errors, m.errors)
	return &both
}

// Close closes the models that have a Close method.
func (m *modelSet) Close() error { return m.closeExcept(&modelSet{}) }

// closeExcept closes the models that other does not contain.
func (m *modelSet) closeExcept(other *modelSet) error {
	var errs []error
	for name, one := range m.single {
		if c, ok := one.Model.(io.Closer); ok && other.single[name].Model != one.Model {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// modelGracePeriod is how long a replaced model stays open for requests that already
// hold it.
const modelGracePeriod = time.Minute

// closeLater closes the models that next does not contain, after modelGracePeriod.
func (m *modelSet) closeLater(next *modelSet) {
	time.AfterFunc(modelGracePeriod, func() { _ = m.closeExcept(next) }) // closing a script does not fail
}
