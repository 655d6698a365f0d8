// Runs batches of programs on the Verilated accelerator; see vta_hw/simulate.py, which writes and reads the files.
// usage: harness JOBS RESULTS
//
// Keeps the bytes of DRAM, drives the AXI4-Lite registers, and records every dispatch, accept and end.
// Built for waveforms, it writes those of a window of cycles, kCycleTime units of time each.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "Vsimulation_top.h"
#include "clocks.inc"
#include "registers.inc"
#include "verilated.h"
#include "verilated_sym_props.h"
#include "verilated_syms.h"
#if VM_TRACE_FST
#include "verilated_fst_c.h"
using Waves = VerilatedFstC;
#elif VM_TRACE
#include "verilated_vcd_c.h"
using Waves = VerilatedVcdC;
#endif

// Verilator spells the second of two underscores so.
#define HOST(signal) host___05F##signal

namespace {

constexpr int kUnits = 4;
constexpr uint64_t kCycleTime = 10;

struct Memory {
    std::string scope, variable;
    uint32_t words, word_bytes;
    uint8_t* data;
    size_t stride;
};

[[noreturn]] void fail(const std::string& message) {
    std::fprintf(stderr, "%s\n", message.c_str());
    std::exit(2);
}

class Reader {
  public:
    explicit Reader(const char* path) : file_(std::fopen(path, "rb")) {
        if (!file_) fail(std::string("cannot read ") + path);
    }
    void bytes(void* to, size_t count) {
        if (count && std::fread(to, 1, count, file_) != count) fail("job file ends early");
    }
    template <typename T> T value() {
        T result;
        bytes(&result, sizeof result);
        return result;
    }
    std::string text() {
        std::string result(value<uint32_t>(), ' ');
        bytes(result.data(), result.size());
        return result;
    }

  private:
    FILE* file_;
};

class Writer {
  public:
    explicit Writer(const char* path) : file_(std::fopen(path, "wb")) {
        if (!file_) fail(std::string("cannot write ") + path);
    }
    ~Writer() {
        if (std::fclose(file_)) fail("results could not be written");
    }
    void bytes(const void* from, size_t count) {
        if (count && std::fwrite(from, 1, count, file_) != count) fail("results could not be written");
    }
    template <typename T> void value(T item) { bytes(&item, sizeof item); }

  private:
    FILE* file_;
};

struct Job {
    uint32_t program_address, program_count, window_base, window_limit, watchdog;
    uint32_t latency, interval, queue, turnaround, response;
    uint32_t dump, dram_base, dram_size;
    uint64_t cycle_limit;
};

class Machine {
  public:
    explicit Machine(std::vector<Memory> memories)
        : memories_(std::move(memories)) {
#if VM_TRACE
        context_.traceEverOn(true);
#endif
        top_ = std::make_unique<Vsimulation_top>(&context_);
        top_->eval();
        for (Memory& memory : memories_) find(memory);
    }

    void run(Reader& in, Writer& out) {
        Job job;
        in.bytes(&job, sizeof job);
        for (Memory& memory : memories_) {
            for (uint32_t word = 0; word < memory.words; ++word)
                in.bytes(memory.data + word * memory.stride, memory.word_bytes);
        }
        std::vector<uint64_t> snapshots(in.value<uint32_t>());
        in.bytes(snapshots.data(), snapshots.size() * sizeof(uint64_t));
        const std::string waves = in.text();
        wave_first_ = in.value<uint64_t>();
        wave_last_ = in.value<uint64_t>();
        dram_.resize(job.dram_size);
        in.bytes(dram_.data(), dram_.size());
        base_ = job.dram_base;
        for (auto* times : {&dispatched_, &accepted_, &ended_}) times->assign(job.program_count, -1);
        for (auto& queue : waiting_) queue.clear();
        for (auto& queue : flying_) queue.clear();
        next_ = 0;
        cycle_ = 0;

        top_->latency = job.latency;
        top_->interval = job.interval;
        top_->queue_bursts = job.queue;
        top_->turnaround = job.turnaround;
        top_->response = job.response;
        top_->rst = 1;
        for (int i = 0; i < 3; ++i) tick();
        top_->rst = 0;
        while (!top_->ready) tick();
        // Rows that the initialisation left open are closed by now, and no refresh is under way.
        for (int i = 0; i < 64; ++i) tick();
        write(kProgramAddress, job.program_address);
        write(kProgramCount, job.program_count);
        write(kWindowBase, job.window_base);
        write(kWindowLimit, job.window_limit);
        write(kWatchdog, job.watchdog);
        write(kControl, 1);
        begin_waves(waves);
        size_t taken = 0;
        const auto begin = std::chrono::steady_clock::now();
        while ((top_->trace_cycle || !cycle_) && cycle_ < job.cycle_limit) {
            tick();
            for (; taken < snapshots.size() && cycle_ >= snapshots[taken]; ++taken) snapshot(out);
        }
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
        for (; taken < snapshots.size(); ++taken) snapshot(out);
        end_waves();

        out.value<uint32_t>(read(kStatus));
        out.value<uint32_t>(read(kErrorCode));
        out.value<uint32_t>(read(kErrorIndex));
        for (uint32_t offset : kCounters) {
            const uint64_t low = read(offset);
            out.value<uint64_t>(low | uint64_t(read(offset + 4)) << 32);
        }
        out.value<double>(spent.count());
        for (const auto* times : {&dispatched_, &accepted_, &ended_})
            out.bytes(times->data(), times->size() * sizeof(int64_t));
        out.bytes(dram_.data(), dram_.size());
        if (job.dump) scratchpads(out);
    }

  private:
    void snapshot(Writer& out) {
        out.bytes(dram_.data(), dram_.size());
        scratchpads(out);
    }

    void scratchpads(Writer& out) {
        for (const Memory& memory : memories_) {
            for (uint32_t word = 0; word < memory.words; ++word)
                out.bytes(memory.data + word * memory.stride, memory.word_bytes);
        }
    }

#if VM_TRACE
    void begin_waves(const std::string& path) {
        waves_.reset();
        if (path.empty()) return;
        waves_ = std::make_unique<Waves>();
        top_->trace(waves_.get(), 99);
        waves_->open(path.c_str());
        if (!waves_->isOpen()) fail("cannot write " + path);
    }

    void end_waves() {
        if (waves_) waves_->close();
        waves_.reset();
    }

    void draw(uint64_t half) {
        if (waves_ && wave_first_ <= cycle_ && cycle_ <= wave_last_)
            waves_->dump(kCycleTime * cycle_ + half);
    }

    std::unique_ptr<Waves> waves_;
#else
    void begin_waves(const std::string& path) {
        if (!path.empty()) fail("this simulation was built without waveforms");
    }

    void end_waves() {}
    void draw(uint64_t) {}
#endif

    void find(Memory& memory) {
        const VerilatedScope* scope = context_.scopeFind(memory.scope.c_str());
        VerilatedVar* variable = scope ? scope->varFind(memory.variable.c_str()) : nullptr;
        if (!variable) fail("no memory " + memory.scope + " " + memory.variable);
        memory.data = static_cast<uint8_t*>(variable->datap());
        memory.stride = variable->entSize();
    }

    // One clock period: the rising edge, then memory's answer to the new address, then the falling edge.
    // The core's own clock, twice as fast, rises with the other and where that falls.
    void tick() {
        top_->clk = 1;
#if CORE_CLOCK
        top_->core_clk = 1;
#endif
        top_->eval();
        draw(0);
        const uint64_t offset = uint64_t(top_->address) - base_;
        if (offset + kMemoryBytes <= dram_.size()) {
            std::memcpy(&top_->read_data, &dram_[offset], kMemoryBytes);
        } else {
            std::memset(&top_->read_data, 0, kMemoryBytes);
        }
#if CORE_CLOCK
        top_->core_clk = 0;
        top_->eval();
        draw(kCycleTime / 4);
        top_->core_clk = 1;
#endif
        top_->clk = 0;
        top_->eval();
        draw(kCycleTime / 2);
#if CORE_CLOCK
        top_->core_clk = 0;
        top_->eval();
        draw(3 * kCycleTime / 4);
#endif
        if (top_->write) store(offset);
        if (top_->trace_cycle) trace();
        if (top_->violation) fail("SDRAM violation " + std::to_string(int(top_->violation)));
    }

    void store(uint64_t offset) {
        if (offset + kMemoryBytes > dram_.size()) return;
        const auto* data = reinterpret_cast<const uint8_t*>(&top_->write_data);
        for (int i = 0; i < kMemoryBytes; ++i)
            if (top_->write_strobe >> i & 1) dram_[offset + i] = data[i];
    }

    void trace() {
        for (int unit = 0; unit < kUnits; ++unit) {
            if (top_->trace_done >> unit & 1) {
                ended_[flying_[unit].front()] = cycle_;
                flying_[unit].pop_front();
            }
            if (top_->trace_accept >> unit & 1) {
                accepted_[waiting_[unit].front()] = cycle_;
                flying_[unit].push_back(waiting_[unit].front());
                waiting_[unit].pop_front();
            }
            if (top_->trace_dispatch >> unit & 1) {
                dispatched_[next_] = cycle_;
                waiting_[unit].push_back(next_++);
            }
        }
        ++cycle_;
    }

    void write(uint32_t offset, uint32_t value) {
        top_->HOST(awaddr) = offset;
        top_->HOST(wdata) = value;
        top_->HOST(wstrb) = 15;
        top_->HOST(awvalid) = top_->HOST(wvalid) = top_->HOST(bready) = 1;
        tick();
        top_->HOST(awvalid) = top_->HOST(wvalid) = 0;
        if (offset != kControl) {
            tick();
            tick();
        }
    }

    uint32_t read(uint32_t offset) {
        top_->HOST(araddr) = offset;
        top_->HOST(arvalid) = top_->HOST(rready) = 1;
        tick();
        top_->HOST(arvalid) = 0;
        while (!top_->HOST(rvalid)) tick();
        const uint32_t value = top_->HOST(rdata);
        tick();
        return value;
    }

    VerilatedContext context_;
    std::unique_ptr<Vsimulation_top> top_;
    std::vector<Memory> memories_;
    std::vector<uint8_t> dram_;
    uint64_t base_ = 0, cycle_ = 0, wave_first_ = 0, wave_last_ = 0;
    uint32_t next_ = 0;
    std::vector<int64_t> dispatched_, accepted_, ended_;
    std::deque<uint32_t> waiting_[kUnits], flying_[kUnits];
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) fail("usage: harness JOBS RESULTS");
    Reader in(argv[1]);
    Writer out(argv[2]);
    std::vector<Memory> memories(in.value<uint32_t>());
    for (Memory& memory : memories) {
        memory.scope = in.text();
        memory.variable = in.text();
        memory.words = in.value<uint32_t>();
        memory.word_bytes = in.value<uint32_t>();
    }
    Machine machine(std::move(memories));
    for (uint32_t left = in.value<uint32_t>(); left; --left) machine.run(in, out);
}
