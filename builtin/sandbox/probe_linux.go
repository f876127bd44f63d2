package sandbox

import (
	"fmt"
	"unsafe"

	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// kernelLayers returns the layers that the kernel offers to every process, with what it
// says about them. Only Landlock and seccomp can be asked for without a job.
func kernelLayers() map[string]string {
	found := map[string]string{}
	if abi, err := llsys.LandlockGetABIVersion(); err == nil && abi > 0 {
		found[layerLandlock] = fmt.Sprintf("version %d of its interface", abi)
	}
	action := uint32(unix.SECCOMP_RET_ERRNO)
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action))); errno == 0 {
		found[layerSeccomp] = "filters of system calls"
	}
	return found
}

// offersGroups reports whether a control group that bounds memory can be created.
func (l *Launcher) offersGroups() bool {
	g := l.newControlGroup(JobLimits{}.orDefault())
	defer g.close()
	return g.memory
}
