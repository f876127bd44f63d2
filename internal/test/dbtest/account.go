package dbtest

import (
	"os/user"
	"strconv"
)

// lookupAccount returns the numeric ids of an account.
func lookupAccount(name string) (owner, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return owner{}, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return owner{}, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	return owner{uint32(uid), uint32(gid)}, err
}
