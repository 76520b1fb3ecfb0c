#include "harness/injected/raw_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace launchgap::injected {
namespace {

/// As much of it as can be written; a signal is no end.
std::size_t write_at(int file, const void* data, std::size_t count, std::uint64_t offset) {
  const char* const bytes = static_cast<const char*>(data);
  std::size_t done = 0;
  while (done < count) {
    const ssize_t n = pwrite(file, bytes + done, count - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = ENOSPC;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

}  // namespace

bool RawFile::create(const std::string& folder) {
  // A process that becomes another program keeps its number.
  constexpr int kMostPrograms = 1000;
  for (int i = 0; i < kMostPrograms; ++i) {
    path_ = folder + "/" + std::to_string(getpid()) + "." + std::to_string(i) + ".raw";
    const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno == EEXIST) continue;
    if (file < 0) return false;
    std::memcpy(header.magic, kRawMagic, sizeof kRawMagic);
    const bool whole = write_at(file, &header, sizeof header, 0) == sizeof header;
    close(file);
    return whole;
  }
  return false;
}

void RawFile::limit(std::uint64_t bytes) {
  constexpr std::uint64_t kBlocks = 16, kLeast = sizeof(RawBlock) + 2 * kLongestEntry;
  limit_ = bytes;
  room_ = std::clamp<std::uint64_t>(bytes / kBlocks, kLeast, block_.size());
}

void RawFile::write_header() {
  const int file = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  header.bytes = end_ - sizeof header;
  write_at(file, &header, sizeof header, 0);
  close(file);
}

void RawFile::text(const char* text, std::size_t length) {
  length = std::min(length, kLongestText);
  number(length);
  bytes(reinterpret_cast<const unsigned char*>(text), length);
}

void RawFile::bytes(const unsigned char* data, std::size_t count) {
  std::memcpy(block_.data() + used_, data, count);
  used_ += count;
}

void RawFile::flush() {
  if (used_ == sizeof(RawBlock)) return;
  const std::size_t count = used_ - sizeof(RawBlock);
  RawBlock head{RawBlock::kMagic,
                static_cast<std::uint32_t>(count),
                raw_checksum(block_.data() + sizeof(RawBlock), count)};
  std::memcpy(block_.data(), &head, sizeof head);
  // Where descriptors are scarce for a moment, the block may wait and grow.
  const bool full = used_ + kLongestEntry > room_;
  if (failure_.empty() && !append(block_.data(), used_, full) && failure_.empty()) return;
  used_ = sizeof(RawBlock);
  last_time_ = 0;
  last_correlation_ = 0;
}

bool RawFile::append(const unsigned char* data, std::size_t count, bool must) {
  if (end_ - sizeof header + count > limit_) {
    failure_ = "its limit of " + std::to_string(limit_) + " bytes is reached";
    return false;
  }
  const int file = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0 && !must && (errno == EMFILE || errno == ENFILE)) return false;
  if (file < 0 || write_at(file, data, count, end_) != count) {
    failure_ = std::string("its file cannot be written: ") + std::strerror(errno);
    // A torn block would be there for nothing.
    if (file >= 0 && ftruncate(file, static_cast<off_t>(end_)) != 0) errno = 0;
  } else {
    end_ += count;
  }
  if (file >= 0) close(file);
  return failure_.empty();
}

}  // namespace launchgap::injected
