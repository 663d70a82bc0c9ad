// One thread that leads, and others that take parts of its work as long as they have none of their own.
//
// Who comes first takes a part: the results must not depend on it. A part that has been taken is waited for, one
// that has not is done by the leader itself, so that helpers who come late, or never, cost nothing.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>

namespace separatrix {

class Team {
public:
    using Part = void (*)(void* work, std::int64_t number);

    // Parts 0 … count − 1 of some work, here and by the helpers.
    template <class Work>
    void share(std::int64_t count, Work work) {
        {
            const std::lock_guard<std::mutex> hold(lock);
            part = [](void* of, std::int64_t number) { (*static_cast<Work*>(of))(number); };
            what = &work;
            next = done = 0;
            parts = count;
        }
        if (count > 1) wake.notify_all();
        std::unique_lock<std::mutex> hold(lock);
        take_parts(hold);
        ended.wait(hold, [&] { return done == parts; });
        parts = next = 0;
        if (failed) std::rethrow_exception(std::exchange(failed, nullptr));
    }

    // As long as it lives, helpers wait for parts.
    class Leader {
    public:
        explicit Leader(Team& of) : team(of) { team.set(true); }
        Leader(const Leader&) = delete;
        Leader& operator=(const Leader&) = delete;
        ~Leader() { team.set(false); }

    private:
        Team& team;
    };

    // Helps until the leader has ended.
    void help() {
        std::unique_lock<std::mutex> hold(lock);
        while (open) {
            take_parts(hold);
            wake.wait(hold, [&] { return !open || next < parts; });
        }
    }

private:
    void set(bool is_open) {
        {
            const std::lock_guard<std::mutex> hold(lock);
            open = is_open;
        }
        wake.notify_all();
    }
    void take_parts(std::unique_lock<std::mutex>& hold) {
        while (next < parts) {
            const std::int64_t number = next++;
            hold.unlock();
            std::exception_ptr problem;
            try {
                part(what, number);
            } catch (...) {  // such as no memory: the leader, who waits for the part, tells of it
                problem = std::current_exception();
            }
            hold.lock();
            if (problem) failed = problem;
            if (++done == parts) ended.notify_one();
        }
    }

    std::mutex lock;
    std::condition_variable wake, ended;
    Part part = nullptr;
    void* what = nullptr;
    std::exception_ptr failed;
    std::int64_t parts = 0, next = 0, done = 0;
    bool open = false;
};

}  // namespace separatrix
