#pragma once
/// Environment variables of launchers.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace tandem::bootstrap {

/// A function that returns the value of a variable, or nothing if it is unset or empty.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> variable_of_process(const std::string& name);

/// Returns the name of this process's host for errors: TANDEM_HOST, which divides a computer into hosts, else what the
/// system calls it. It has at most 255 bytes.
std::string name_of_host();

/// Returns the seconds that the environment's `variable` gives, else `given`. Throws InvalidArgument.
double seconds_of(double given, const char* option, const char* variable);
/// Returns the microseconds that the environment's `variable` gives, else `given`. Throws InvalidArgument.
std::chrono::microseconds microseconds_of(std::chrono::microseconds given, const char* variable);
/// Returns the seconds after which a wait without end is reported: TANDEM_SLOW_WAIT_S, else 60.
double slow_wait_s();
/// The variable by which processes may share a GPU.
inline constexpr const char* kShareGpu = "TANDEM_SHARE_GPU";
/// Returns whether TANDEM_SHARE_GPU is 1. Throws InvalidArgument for a value other than 0 and 1.
bool may_share_gpus();

struct Places {
  int pe = 0, pes = 1, local_pe = 0, local_pes = 1;
  bool has_hosts = false;  ///< the launcher states that the job is on several hosts
  /// A text that is the same for the processes of one job, and differs from other jobs of this user at the same time.
  std::string job;
};

/// Throws InvalidArgument with the name of the variable.
Places read_places(const Variables& variables);

/// The address and the port at which the processes of a job on several hosts meet.
struct MeetingPoint {
  std::string address;  ///< of PE 0's host
  std::uint16_t port = 0;
};

/// Reads MASTER_ADDR (else the first host of Slurm's list), and TANDEM_PORT (else MASTER_PORT + 1, else a port that
/// follows from Slurm's numbers). Throws InvalidArgument with the name of the variable.
MeetingPoint read_meeting_point(const Variables& variables);

}  // namespace tandem::bootstrap
