package sandbox

// Stream is one of a command's two outputs.
type Stream uint8

// The outputs.
const (
	Stdout Stream = iota
	Stderr
	streams
)

func (s Stream) String() string {
	if s == Stderr {
		return "stderr"
	}
	return "stdout"
}

// Range is a run of bytes of a stream, End not included.
type Range struct{ Start, End int64 }

// Chunk is a piece of a stream. When Offset is past the offset that was asked
// for, the bytes between were dropped. Empty Data at the asked offset means that
// nothing further has arrived.
type Chunk struct {
	Offset int64
	Data   []byte
}
