package database

import (
	"database/sql/driver"
	"errors"
)

// prepared are the prepared statements that a connection keeps, by their text. Number
// and length are limited, because callers can write statements.
type prepared map[string]driver.Stmt

const (
	maxPrepared     = 64
	maxPreparedText = 8 << 10 // bytes of a statement
)

// add adds a statement with at most maxPreparedText bytes. If the limit is reached, it
// closes all others.
func (p prepared) add(text string, s driver.Stmt) (err error) {
	if len(p) >= maxPrepared {
		err = p.closeAll()
	}
	p[text] = s
	return err
}

// closeAll closes and removes all statements.
func (p prepared) closeAll() error {
	var errs []error
	for text, s := range p {
		errs = append(errs, s.Close())
		delete(p, text)
	}
	return errors.Join(errs...)
}
