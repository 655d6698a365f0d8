// A board behind a pseudo-terminal: its Verilated gateware, bit by bit; see bitstreams/emulator.py.
// usage: emulator BYTES DIVISOR GARBAGE SEED DROP FLIP HZ CLOCK
//
// BYTES: of the SDRAM; it holds noise at first when GARBAGE is 1.  DIVISOR: cycles of a serial bit.
// DROP, FLIP: of every million bytes on the line, either way, how many are lost or damaged.
// HZ: cycles a second.  CLOCK: a file, whose first 8 bytes are the nanoseconds that have passed for
// the board; while nothing happens they go on, so that a host that waits in them sees an end.
// Prints the terminal's name, and at the end the number of bytes lost or damaged.  SIGUSR1 resets
// the board, SIGUSR2 takes its power away for a moment.  Ends when its standard input is closed, and
// with status 3 when the SDRAM's timing is violated.

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "Vemulation_top.h"
#include "clocks.inc"
#include "verilated.h"

namespace {

volatile std::sig_atomic_t reset_asked = 0, power_asked = 0;

// Loses and damages bytes.
class Faults {
  public:
    Faults(uint64_t seed, uint32_t drop, uint32_t flip) : random_(seed), drop_(drop), flip_(flip) {}
    // Whether the byte arrives; what of it.
    bool pass(uint8_t& byte) {
        if (!drop_ && !flip_) return true;
        const uint32_t draw = random_() % 1000000;
        if (draw >= drop_ + flip_) return true;
        ++count_;
        if (draw < drop_) return false;
        byte ^= 1 << random_() % 8;
        return true;
    }
    uint64_t count() const { return count_; }

  private:
    std::mt19937_64 random_;
    uint32_t drop_, flip_;
    uint64_t count_ = 0;
};

class Board {
  public:
    Board(int line, size_t bytes, int divisor, bool garbage, uint64_t seed, Faults faults, double hz,
          volatile uint64_t* clock)
        : top_(std::make_unique<Vemulation_top>(&context_)), line_(line), divisor_(divisor),
          nanoseconds_(1e9 / hz), clock_(clock), memory_(bytes), noise_(seed), phase_(seed), faults_(faults) {
        if (garbage) forget();
        top_->receive = 1;
        reset();
    }

    uint64_t faults() const { return faults_.count(); }

    // Memory holds noise.
    void forget() {
        for (auto& byte : memory_) byte = noise_();
    }

    void reset() {
        top_->rst = 1;
        for (int i = 0; i < 4; ++i) tick();
        top_->rst = 0;
    }

    // One clock period, two of the core's own clock.
    void tick() {
        top_->clk = 1;
#if CORE_CLOCK
        top_->core_clk = 1;
#endif
        top_->eval();
        const size_t place = top_->address % memory_.size();
        top_->read_data = memory_[place] | memory_[place + 1] << 8;
#if CORE_CLOCK
        top_->core_clk = 0;
        top_->eval();
        top_->core_clk = 1;
#endif
        top_->clk = 0;
        top_->eval();
#if CORE_CLOCK
        top_->core_clk = 0;
        top_->eval();
#endif
        if (top_->write) {
            if (top_->write_strobe & 1) memory_[place] = top_->write_data & 255;
            if (top_->write_strobe & 2) memory_[place + 1] = top_->write_data >> 8;
        }
        if (top_->violation) {
            std::fprintf(stderr, "SDRAM violation %d\n", int(top_->violation));
            std::_Exit(3);
        }
    }

    // To the board: one bit of the line for each `divisor_` cycles.
    void drive() {
        if (send_left_ == 0) {
            if (incoming_.empty()) return;
            sending_ = incoming_.front() << 1 | 1 << 9;
            incoming_.pop_front();
            send_left_ = 10 * divisor_;
        }
        top_->receive = sending_ >> (10 - (send_left_ + divisor_ - 1) / divisor_) & 1;
        --send_left_;
    }

    // From the board: bits sampled in their middle.
    void sample() {
        if (take_left_ == 0) {
            if (!top_->transmit) take_left_ = 10 * divisor_;
            return;
        }
        --take_left_;
        if (take_left_ % divisor_ == divisor_ / 2) taking_ = taking_ >> 1 | top_->transmit << 9;
        if (take_left_ == divisor_ / 4) {
            uint8_t byte = taking_ >> 1;
            if (faults_.pass(byte)) outgoing_.push_back(byte);
            take_left_ = 0;
        }
    }

    bool quiet() const {
        return incoming_.empty() && !send_left_ && !take_left_ && !top_->running && idle_ > 4000;
    }

    // Move bytes between the terminal and the line; wait there while nothing happens.
    bool exchange() {
        pollfd ends[2] = {{line_, POLLIN, 0}, {0, POLLIN, 0}};
        if (poll(ends, 2, quiet() ? 20 : 0) < 0) return true;
        if (ends[1].revents & (POLLHUP | POLLIN)) {
            char byte;
            if (read(0, &byte, 1) <= 0) return false;
        }
        if (ends[0].revents & POLLIN) {
            uint8_t buffer[512];
            const ssize_t count = incoming_.size() < 65536 ? read(line_, buffer, sizeof buffer) : 0;
            for (ssize_t i = 0; i < count; ++i)
                if (faults_.pass(buffer[i])) incoming_.push_back(buffer[i]);
        }
        if (!outgoing_.empty()) {
            const std::vector<uint8_t> bytes(outgoing_.begin(), outgoing_.end());
            const ssize_t count = write(line_, bytes.data(), bytes.size());
            if (count > 0) outgoing_.erase(outgoing_.begin(), outgoing_.begin() + count);
        }
        return true;
    }

    void run() {
        while (exchange()) {
            if (power_asked) forget();
            if (reset_asked || power_asked) {
                reset_asked = power_asked = 0;
                reset();
            }
            // A host's bytes come at any cycle.
            const int cycles = 2000 + phase_() % 64;
            *clock_ = static_cast<uint64_t>((cycles_ += cycles) * nanoseconds_);
            if (quiet()) continue;
            for (int i = 0; i < cycles; ++i) {
                drive();
                tick();
                sample();
                idle_ = send_left_ || take_left_ || top_->running ? 0 : idle_ + 1;
            }
        }
    }

  private:
    VerilatedContext context_;
    std::unique_ptr<Vemulation_top> top_;
    int line_, divisor_;
    double nanoseconds_;
    volatile uint64_t* clock_;
    std::vector<uint8_t> memory_;
    std::mt19937_64 noise_, phase_;
    Faults faults_;
    std::deque<uint8_t> incoming_, outgoing_;
    uint32_t sending_ = 0, taking_ = 0;
    int send_left_ = 0, take_left_ = 0;
    uint64_t idle_ = 0, cycles_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 9) {
        std::fprintf(stderr, "usage: emulator BYTES DIVISOR GARBAGE SEED DROP FLIP HZ CLOCK\n");
        return 2;
    }
    const int line = posix_openpt(O_RDWR | O_NOCTTY);
    if (line < 0 || grantpt(line) || unlockpt(line)) {
        std::perror("pseudo-terminal");
        return 2;
    }
    // The far end stays open here, so that the line does not hang up between two hosts.
    const int far = open(ptsname(line), O_RDWR | O_NOCTTY);
    termios settings;
    if (far < 0 || tcgetattr(far, &settings)) {
        std::perror("pseudo-terminal");
        return 2;
    }
    cfmakeraw(&settings);
    tcsetattr(far, TCSANOW, &settings);
    fcntl(line, F_SETFL, O_NONBLOCK);
    std::signal(SIGUSR1, [](int) { reset_asked = 1; });
    std::signal(SIGUSR2, [](int) { power_asked = 1; });
    std::printf("%s\n", ptsname(line));
    std::fflush(stdout);
    const int file = open(argv[8], O_RDWR);
    void* const clock = mmap(nullptr, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || clock == MAP_FAILED) {
        std::perror(argv[8]);
        return 2;
    }
    const uint64_t seed = std::strtoull(argv[4], nullptr, 10);
    Board board(line, std::strtoull(argv[1], nullptr, 10), std::atoi(argv[2]), std::atoi(argv[3]) != 0, seed,
                Faults(seed, std::atoi(argv[5]), std::atoi(argv[6])), std::atof(argv[7]),
                static_cast<volatile uint64_t*>(clock));
    board.run();
    std::printf("%llu\n", static_cast<unsigned long long>(board.faults()));
    return 0;
}
