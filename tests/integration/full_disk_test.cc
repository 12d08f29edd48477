// A disk that fills up and is freed again, under a real daemon: a file system of its own, so root
// only.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/one_disk.h"
#include "tests/integration/http_call.h"
#include "tests/support/daemon.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

#include <sys/mount.h>
#include <sys/statvfs.h>

namespace delayd::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr off_t kMiB = off_t{1} << 20;

class SmallDisk {
 public:
  explicit SmallDisk(std::string path, const char* type = "tmpfs") : path_(std::move(path)) {
    fs::create_directory(path_);
    mounted_ = ::mount(type, path_.c_str(), type, 0, "size=320m,mode=0700") == 0;
    error_ = mounted_ ? "" : std::strerror(errno);  // NOLINT(concurrency-mt-unsafe)
  }

  ~SmallDisk() {
    if (mounted_) {
      ::umount2(path_.c_str(), MNT_DETACH);
    }
  }

  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }

  const std::string& error() const { return error_; }

  // Takes all space but `left` bytes.
  void Fill(off_t left) const {
    struct statvfs info {};

    ASSERT_EQ(::statvfs(path_.c_str(), &info), 0);
    const auto free = static_cast<off_t>(info.f_bavail * info.f_frsize);
    ASSERT_GT(free, left);
    const int fd = ::open(Filler().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    EXPECT_EQ(::posix_fallocate(fd, 0, free - left), 0);
    ::close(fd);
  }

  void Free() const { fs::remove(Filler()); }

 private:
  std::string Filler() const { return path_ + "/filler"; }

  std::string path_;
  std::string error_;
  bool mounted_ = false;
};

TEST(FullDiskTest, NewJobsAreRefusedBelowTheReserveAndEverythingElseGoesOn) {
  Daemon daemon;
  const SmallDisk disk(daemon.Path("disk"));
  if (!disk.mounted()) {
    GTEST_SKIP() << "cannot mount a small tmpfs: " << disk.error();
  }
  const std::string config = daemon.Write("delayd.yaml", "storage: { reserve: 64MiB }\n");
  ASSERT_TRUE(daemon.Start({"--config", config, "--data-dir", daemon.Path("disk/data")}));
  const std::string ready = daemon.CtlOk({"enqueue", "--in", "0s", "x"});
  const std::string far = daemon.CtlOk({"enqueue", "--in", "1h", "x"});
  EXPECT_EQ(HttpCall(daemon, "GET", "/readyz").status, 200);

  disk.Fill(32 * kMiB);
  ProcessResult refused;
  EXPECT_TRUE(WaitUntil([&] {
    refused = daemon.Ctl({"enqueue", "--in", "1h", "x"});
    return refused.exit_code == 1;
  }));
  EXPECT_THAT(refused.err, HasSubstr("storage.reserve"));
  EXPECT_THAT(refused.err, HasSubstr("free some space"));
  EXPECT_THAT(daemon.Ctl({"enqueue", "-o", "json", "x"}).err, HasSubstr("disk_full"));
  EXPECT_EQ(HttpCall(daemon, "GET", "/readyz").status, 503);
  EXPECT_EQ(HttpCall(daemon, "GET", "/healthz").status, 200);

  daemon.CtlOk({"work", "--drain", "--exec", "/bin/true"});
  EXPECT_EQ(daemon.Ctl({"show", ready}).exit_code, 3) << "it was acked";
  daemon.CtlOk({"reschedule", far, "--in", "2h"});
  daemon.CtlOk({"cancel", far});

  disk.Free();
  EXPECT_TRUE(WaitUntil([&] { return daemon.Ctl({"enqueue", "--in", "1h", "x"}).exit_code == 0; }));
  EXPECT_EQ(HttpCall(daemon, "GET", "/readyz").status, 200);
  EXPECT_EQ(daemon.Stop().exit_code, 0);
}

// The service manager tries once a second: what each try left would add up.
TEST(FullDiskTest, AStartWithoutRoomLeavesNothing) {
  Daemon daemon;
  const SmallDisk disk(daemon.Path("disk"));
  if (!disk.mounted()) {
    GTEST_SKIP() << "cannot mount a small tmpfs: " << disk.error();
  }
  const std::string data = daemon.Path("disk/data");
  const std::string config = daemon.Write("delayd.yaml", "storage: { reserve: 0 }\n");
  const std::vector<std::string> flags = {"--config", config, "--data-dir", data};
  ASSERT_TRUE(daemon.Start(flags));
  daemon.Kill();
  disk.Fill(0);
  ASSERT_TRUE(daemon.Start(flags)) << "what was allocated ahead of the log is room enough";
  daemon.CtlOk({"enqueue", "--in", "1h", "x"});
  daemon.Kill();  // its log is replayed into a table file by the next start
  disk.Free();
  const auto entries = [&data] {
    return std::distance(fs::directory_iterator(data), fs::directory_iterator());
  };
  const auto before = entries();
  for (const off_t left : {off_t{0}, off_t{64} << 10, off_t{1000} << 10}) {
    disk.Fill(left);
    const ProcessResult result = daemon.StartExpectingFailure(flags);
    EXPECT_EQ(result.exit_code, 3) << result.err;
    EXPECT_THAT(result.err, AllOf(HasSubstr("disk_full"), HasSubstr("free some space")));
    EXPECT_EQ(entries(), before) << left;
    disk.Free();
  }
  ASSERT_TRUE(daemon.Start(flags));
  EXPECT_NE(daemon.CtlOk({"list", "-q"}), "");
  EXPECT_EQ(daemon.Stop().exit_code, 0);
}

// A file in it that nobody may open for writing is what an ext4 looks like that the kernel made
// read-only after an error: statvfs(2) says nothing.
TEST(FullDiskTest, AFileSystemThatTakesNoWritesThoughItIsMountedWritableTakesNoNewJobs) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string format = daemon.data_dir() + "/FORMAT";
  if (::mount(format.c_str(), format.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    GTEST_SKIP() << "cannot mount a file: " << std::strerror(errno);  // NOLINT(*-mt-unsafe)
  }
  EXPECT_EQ(::mount(nullptr, format.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr),
            0);
  EXPECT_TRUE(WaitUntil([&] { return HttpCall(daemon, "GET", "/readyz").status == 503; }));
  EXPECT_THAT(daemon.log(), HasSubstr("the disk is read-only; new jobs are refused"));
  EXPECT_THAT(daemon.Ctl({"enqueue", "-o", "json", "x"}).err, HasSubstr("disk_read_only"));
  EXPECT_EQ(HttpCall(daemon, "GET", "/healthz").status, 200);
  EXPECT_EQ(::umount2(format.c_str(), MNT_DETACH), 0);
  EXPECT_TRUE(WaitUntil([&] { return HttpCall(daemon, "GET", "/readyz").status == 200; }));
  EXPECT_EQ(daemon.Stop().exit_code, 0);
}

// It is no empty one.
TEST(FullDiskTest, OnAFileSystemThatTellsNoSizesAllGoesOn) {
  Daemon daemon;
  const SmallDisk disk(daemon.Path("disk"), "ramfs");
  if (!disk.mounted()) {
    GTEST_SKIP() << "cannot mount a ramfs: " << disk.error();
  }
  const std::string data = daemon.Path("disk/data");
  ASSERT_TRUE(daemon.Start({"--data-dir", data}));
  daemon.WaitForLog("tells no sizes");
  daemon.CtlOk({"enqueue", "--in", "1h", "x"});
  EXPECT_EQ(HttpCall(daemon, "GET", "/readyz").status, 200);
  EXPECT_THAT(daemon.Ctl({"doctor", "--data-dir", data}).out, HasSubstr("tells no sizes"));
  daemon.Kill();
  ASSERT_TRUE(daemon.Start({"--data-dir", data})) << "its log goes into a table";
  EXPECT_NE(daemon.CtlOk({"list", "-q"}), "");
  EXPECT_EQ(daemon.Stop().exit_code, 0);
}

// Each subvolume has a device number of its own.
TEST(FullDiskTest, SubvolumesOfABtrfsAreOnOneDisk) {
  const TempDir dir;
  const ProcessResult made =
      RunProcess({.argv = {"/bin/sh",
                           "-c",
                           "cd \"$1\" && mkdir m && truncate -s 128M image && "
                           "mkfs.btrfs -q image && mount -o loop image m && mkdir m/here && "
                           "btrfs subvolume create m/there",
                           "sh",
                           dir.path()}});
  if (made.exit_code != 0) {
    GTEST_SKIP() << "cannot mount a btrfs: " << made.err;
  }
  EXPECT_TRUE(storage::AreOnOneDisk(dir.Sub("m/here"), dir.Sub("m/there")));
  EXPECT_FALSE(storage::AreOnOneDisk(dir.Sub("m/here"), dir.path()));
  EXPECT_EQ(::umount2(dir.Sub("m").c_str(), MNT_DETACH), 0);
}

// As FUSE leaves it where its server has ended.
TEST(FullDiskTest, AFileSystemWhoseServerIsGoneIsTold) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start({"--config", daemon.Write("d.yaml", "storage: { reserve: 0 }\n")}));
  const std::string data = daemon.data_dir();
  const int server = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  const std::string options =
      "fd=" + std::to_string(server) + ",rootmode=40000,user_id=0,group_id=0";
  const int mounted = ::mount("fuse", data.c_str(), "fuse", 0, options.c_str());
  const std::string error = std::strerror(errno);  // NOLINT(concurrency-mt-unsafe)
  ::close(server);
  if (mounted != 0) {
    GTEST_SKIP() << "cannot mount a FUSE: " << error;
  }
  EXPECT_TRUE(WaitUntil([&] { return HttpCall(daemon, "GET", "/readyz").status == 503; }));
  EXPECT_THAT(daemon.log(), HasSubstr("or its server is gone"));
  EXPECT_THAT(daemon.Ctl({"doctor"}).out, HasSubstr("takes no writes"));
  EXPECT_EQ(::umount2(data.c_str(), MNT_DETACH), 0);
  EXPECT_TRUE(WaitUntil([&] { return HttpCall(daemon, "GET", "/readyz").status == 200; }));
  EXPECT_EQ(daemon.Stop().exit_code, 0);
}

TEST(FullDiskTest, ADaemonThatStartsOnAFullDiskRefusesFromTheFirstRequestOn) {
  Daemon daemon;
  ASSERT_TRUE(
      daemon.Start({"--config", daemon.Write("delayd.yaml", "storage: { reserve: 1TiB }\n")}));
  const ProcessResult refused = daemon.Ctl({"enqueue", "--in", "1h", "x"});
  if (refused.exit_code == 0) {
    GTEST_SKIP() << "this disk has more than 1 TiB free";
  }
  EXPECT_THAT(refused.err, HasSubstr("storage.reserve"));
  EXPECT_EQ(daemon.Stop().exit_code, 0);
}

}  // namespace
}  // namespace delayd::test
