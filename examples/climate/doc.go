// Package climate is the example that does the main job of SkeletonKey: a hundred years of monthly
// temperature records are read from a mounted export, and the mean of each decade and the linear
// trend go back into it as a table and a picture. README.md beside it is the walk-through.
//
// Guarantee: everything the example needs is inside the program that imports this package (the
// application, the sample job file, the script that makes up records), and Tarball gives the same
// bytes in every run of the same program. The application itself publishes both results or, with an
// exit code that is not 0, says why it did not; the comment at its top tells the whole of it.
//
// Limits: the records are small (all of them are held in memory), have three fields, and name their
// sources in ASCII. The records that make-records.sh makes are made up, and say so.
package climate
