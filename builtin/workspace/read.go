package workspace

import (
	"io"
	"os"
	"syscall"
)

// ReadPart returns at most length bytes of a regular file from offset on, and the
// size in bytes of the whole file. It returns less only at the end of the file.
// Then nothing follows, even if the file has become shorter or longer meanwhile.
// It never opens pipes and devices: the error is permission_denied.
func (d *Dir) ReadPart(name string, offset, length int64) (data []byte, size int64, err error) {
	if name, err = CleanPath(name); err != nil {
		return nil, 0, err
	}
	file, size, err := openRegular(d.Root, name)
	if err != nil {
		return nil, 0, fileError(d.Root, name, err)
	}
	defer file.Close()
	data, size, err = readPart(file, size, offset, length)
	if err != nil {
		return nil, 0, fileError(d.Root, name, err)
	}
	return data, size, nil
}

// readPart reads a part of a file that had size bytes when it was opened. It also
// returns the size, corrected by what the part shows of the file's end.
func readPart(file io.ReaderAt, size, offset, length int64) ([]byte, int64, error) {
	data, err := io.ReadAll(io.NewSectionReader(file, offset, length))
	switch n := int64(len(data)); {
	case n == 0: // the file ends at offset or before
		size = min(size, offset)
	case n < length: // it ends here
		size = offset + n
	default:
		size = max(size, offset+n)
	}
	return data, size, err
}

// openRegular opens a regular file for reading and returns its size in bytes.
func openRegular(root *os.Root, name string) (*os.File, int64, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, 0, err
	}
	if err := checkRegular(name, info); err != nil {
		return nil, 0, err
	}
	// The file may have been replaced meanwhile, even by a pipe: open it without
	// blocking, and check again what was opened.
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	if info, err = file.Stat(); err == nil {
		err = checkRegular(name, info)
	}
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}
