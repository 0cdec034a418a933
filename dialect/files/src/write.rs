//! Files that appear whole or not at all.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::pending::Pending;

/// Bytes that are collected before they are written.
const BUFFER: usize = 1 << 18;

/// Links that are followed on the way to a file that does not exist yet; Linux follows as many.
const LINKS: usize = 40;

/// Writes `content` to `path`, whole or not at all.
///
/// # Errors
/// Those of [`OutputFile::create`] and [`OutputFile::commit`].
pub fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut file = OutputFile::create(path.as_ref())?;
    file.write_all(content.as_ref())?;
    file.commit()
}

/// An incomplete output: its content appears under its name with [`OutputFile::commit`], and is removed when the value is dropped without that.
#[derive(Debug)]
pub struct OutputFile {
    file: BufWriter<NamedTempFile>,
    /// Where the file goes, links resolved.
    place: PathBuf,
    /// What is there now.
    replaced: Option<Metadata>,
    pending: Pending,
}

impl OutputFile {
    /// Opens a file beside the place of `path`, without touching what is there.
    ///
    /// # Errors
    /// If `path` is not a regular file or may not be written, if its folder does not exist or cannot hold a new file.
    pub fn create(path: &Path) -> io::Result<Self> {
        let (place, replaced) = destination(path)?;
        if replaced.is_some() {
            // A file that is protected is not replaced, although the folder would let it be.
            OpenOptions::new().write(true).open(&place)?;
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".remat-").suffix(".tmp").rand_bytes(12);
        // The process's own mask still applies.
        #[cfg(unix)]
        builder.permissions(<fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
        let file = builder.tempfile_in(folder_of(&place))?;
        let pending = Pending::new(file.path());
        Ok(Self {
            pending,
            file: BufWriter::with_capacity(BUFFER, file),
            place,
            replaced,
        })
    }

    /// Path of the file until it has its name, for a library that writes to paths only.
    #[must_use]
    pub fn temporary_path(&self) -> &Path {
        self.file.get_ref().path()
    }

    /// Gives the file its name and replaces the file that has it now. The content is on the disk when this returns.
    ///
    /// # Errors
    /// If the disk is full, or the file cannot be renamed. The old file then stays, and the new one is removed.
    pub fn commit(self) -> io::Result<()> {
        let (file, place, _pending) = self.finish()?;
        file.persist(&place).map_err(|error| error.error)?;
        sync_folder(&place)
    }

    /// Like [`OutputFile::commit`], but an existing file is an error.
    ///
    /// # Errors
    /// Those of [`OutputFile::commit`], and [`ErrorKind::AlreadyExists`].
    pub fn commit_new(self) -> io::Result<()> {
        let (file, place, _pending) = self.finish()?;
        file.persist_noclobber(&place).map_err(|error| error.error)?;
        sync_folder(&place)
    }

    fn finish(self) -> io::Result<(NamedTempFile, PathBuf, Pending)> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        if let Some(replaced) = &self.replaced {
            resemble(file.as_file(), replaced)?;
        }
        file.as_file().sync_all()?;
        Ok((file, self.place, self.pending))
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The regular file that `path` leads to, with what the system knows of it, or the place where there is none yet.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] if something else is there, [`ErrorKind::NotFound`] if the folder is missing, and what the system says.
pub(crate) fn destination(path: &Path) -> io::Result<(PathBuf, Option<Metadata>)> {
    let name = path.file_name().filter(|_| !ends_in_separator(path));
    if name.is_none() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it names no file"));
    }
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok((path.canonicalize()?, Some(metadata))),
        Ok(metadata) => Err(io::Error::new(
            ErrorKind::InvalidInput,
            format!("it is {}, not a regular file", kind(&metadata)),
        )),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok((vacant(path)?, None)),
        Err(error) => Err(error),
    }
}

/// Where `path` leads although nothing is there: through links that lead nowhere, into a folder that exists.
fn vacant(path: &Path) -> io::Result<PathBuf> {
    let mut place = path.to_owned();
    for _ in 0..LINKS {
        let folder = folder_of(&place).canonicalize()?;
        let name = place.file_name().map(OsStr::to_owned);
        place = folder.join(name.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "it names no file"))?);
        match fs::read_link(&place) {
            Ok(target) => place = folder.join(target),
            Err(_) => return Ok(place),
        }
    }
    Err(io::Error::new(ErrorKind::InvalidInput, "it is a link to itself"))
}

/// The folder of a path, which may be the working directory.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn ends_in_separator(path: &Path) -> bool {
    path.as_os_str()
        .as_encoded_bytes()
        .last()
        .is_some_and(|&last| std::path::is_separator(char::from(last)))
}

/// What a thing that is not a regular file is.
fn kind(metadata: &Metadata) -> &'static str {
    if metadata.is_dir() {
        return "a folder";
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let ty = metadata.file_type();
        if ty.is_fifo() {
            return "a pipe";
        }
        if ty.is_socket() {
            return "a socket";
        }
        if ty.is_char_device() || ty.is_block_device() {
            return "a device";
        }
    }
    "something else"
}

/// Gives a file the owner and the permissions of the one that it replaces.
fn resemble(file: &File, replaced: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (replaced.uid(), replaced.gid()) {
            // Only a privileged process can; for others the file is theirs, as every file they write.
            let _ = fchown(file, Some(replaced.uid()), Some(replaced.gid()));
        }
        // Bits that run a program as another user are not handed on.
        file.set_permissions(fs::Permissions::from_mode(replaced.permissions().mode() & 0o777))
    }
    #[cfg(not(unix))]
    {
        file.set_permissions(replaced.permissions())
    }
}

/// Makes sure that the new name is on the disk, too.
fn sync_folder(place: &Path) -> io::Result<()> {
    #[cfg(unix)]
    match File::open(folder_of(place)).and_then(|folder| folder.sync_all()) {
        // Not every file system can, and a folder may be written but not read.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::InvalidInput | ErrorKind::Unsupported | ErrorKind::PermissionDenied
            ) => {}
        other => other?,
    }
    let _ = place;
    Ok(())
}
