package cmd

import (
	"errors"
	"io"
	"maps"
	"time"

	"github.com/rolecall/rolecall/model"
)

// with gives a roster that has those of old too whose names r has not: for the
// time in which roles of both may ask.
func (r *roster) with(old *roster) *roster {
	both := *r
	both.byName, both.faults = maps.Clone(old.byName), maps.Clone(old.faults)
	if both.byName == nil {
		both.byName, both.faults = map[string]model.Model{}, map[string]error{}
	}
	for name := range r.faults {
		delete(both.byName, name)
	}
	maps.Copy(both.byName, r.byName)
	maps.Copy(both.faults, r.faults)
	return &both
}

// Close closes the models that need it.
func (r *roster) Close() error { return r.closeBut(&roster{}) }

// closeBut closes those of r that other has not.
func (r *roster) closeBut(other *roster) error {
	var errs []error
	for name, one := range r.single {
		if c, ok := one.Model.(io.Closer); ok && other.single[name].Model != one.Model {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// lingers is how long a model is kept that is no more in force: somebody may
// have found it just before and ask it now.
const lingers = time.Minute

// retire closes those of r that next has not, later.
func (r *roster) retire(next *roster) {
	time.AfterFunc(lingers, func() { _ = r.closeBut(next) }) // closing a brain frees memory
}
