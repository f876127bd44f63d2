package app

import (
	"errors"
	"io"
	"maps"
	"time"

	"github.com/rolecall/rolecall/model"
)

// union gives a roster that has those of old too whose names r has not: for the
// time in which roles of both may ask.
func (r *modelSet) union(old *modelSet) *modelSet {
	both := *r
	both.byName, both.errors = maps.Clone(old.byName), maps.Clone(old.errors)
	if both.byName == nil {
		both.byName, both.errors = map[string]model.Model{}, map[string]error{}
	}
	for name := range r.errors {
		delete(both.byName, name)
	}
	maps.Copy(both.byName, r.byName)
	maps.Copy(both.errors, r.errors)
	return &both
}

// Close closes the models that need it.
func (r *modelSet) Close() error { return r.closeExcept(&modelSet{}) }

// closeExcept closes those of r that other has not.
func (r *modelSet) closeExcept(other *modelSet) error {
	var errs []error
	for name, one := range r.single {
		if c, ok := one.Model.(io.Closer); ok && other.single[name].Model != one.Model {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// modelGracePeriod is how long a model is kept that is no more in force: somebody may
// have found it just before and ask it now.
const modelGracePeriod = time.Minute

// retire closes those of r that next has not, later.
func (r *modelSet) retire(next *modelSet) {
	time.AfterFunc(modelGracePeriod, func() { _ = r.closeExcept(next) }) // closing a brain frees memory
}
