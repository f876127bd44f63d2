package database

import (
	"database/sql/driver"
	"errors"
)

// prepared are the statements that a connection keeps, by their texts. So many,
// of so many bytes each at most: some are made of what a caller says.
type prepared map[string]driver.Stmt

const (
	maxPrepared     = 64
	maxPreparedText = 8 << 10
)

// keep adds a statement whose text is short enough. When there are as many as may
// be, all others are forgotten.
func (p prepared) keep(text string, s driver.Stmt) (err error) {
	if len(p) >= maxPrepared {
		err = p.forget()
	}
	p[text] = s
	return err
}

func (p prepared) forget() error {
	var errs []error
	for text, s := range p {
		errs = append(errs, s.Close())
		delete(p, text)
	}
	return errors.Join(errs...)
}
